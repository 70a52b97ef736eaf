//! Settings of named plug-ins: controllers, path selectors, feedback, injection controls.

/// Declares the settings of plug-ins of one kind behind one type, whichever crate defines them.
///
/// `definition` is a trait with `NAME`, `SUMMARY`, a type `Parameters` that is a [`ParameterSet`](crate::ParameterSet), and the constructor
/// that `build` names, which makes a `behaviour`. `checks` are functions of the definition that take only the parameters.
///
/// The settings have `defaults`, `with`, `name`, `summary`, `describe`, `set` and `entries`, and `create`, which is private;
/// checks are as visible as they say.
#[macro_export]
macro_rules! plugin_settings {
    (
        $(#[$meta:meta])*
        settings: $settings:ident,
        definition: $definition:ident,
        behaviour: $behaviour:ident,
        build: $new:ident($argument:ident: $argument_type:ty),
        checks: [$($(#[$check_meta:meta])* $visible:vis $check:ident -> $outcome:ty),*],
    ) => {
        $(#[$meta])*
        pub struct $settings(Box<dyn ErasedSettings>);

        impl $settings {
            /// Default settings of `T`, of this crate or another.
            pub fn defaults<T: $definition>() -> Self {
                Self::with::<T>(Default::default())
            }
            /// Given settings of `T`, of this crate or another.
            pub fn with<T: $definition>(parameters: T::Parameters) -> Self {
                Self(Box::new(Erased::<T>(parameters)))
            }
            /// The name in a scenario.
            pub fn name(&self) -> &'static str {
                self.0.name()
            }
            /// One-line summary of the plug-in.
            pub fn summary(&self) -> &'static str {
                self.0.summary()
            }
            /// Every parameter with its default, meaning and source.
            pub fn describe(&self) -> Vec<$crate::ParameterInfo> {
                self.0.describe()
            }
            /// Sets the parameter `key`.
            ///
            /// # Errors
            /// If there is no such key or the value does not fit it.
            pub fn set(&mut self, key: &str, value: &$crate::Value) -> Result<(), $crate::SetError> {
                self.0.set(key, value)
            }
            /// Every parameter with its present value.
            pub fn entries(&self) -> Vec<(&'static str, $crate::Value)> {
                self.0.entries()
            }
            fn create(&self, $argument: $argument_type) -> Box<dyn $behaviour> {
                self.0.create($argument)
            }
            $(
                $(#[$check_meta])*
                $visible fn $check(&self) -> $outcome {
                    self.0.$check()
                }
            )*
        }

        impl Clone for $settings {
            fn clone(&self) -> Self {
                Self(self.0.boxed_clone())
            }
        }

        impl PartialEq for $settings {
            fn eq(&self, other: &Self) -> bool {
                self.name() == other.name() && self.entries() == other.entries()
            }
        }

        impl std::fmt::Debug for $settings {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(self.name()).field(&self.entries()).finish()
            }
        }

        trait ErasedSettings: Send + Sync {
            fn name(&self) -> &'static str;
            fn summary(&self) -> &'static str;
            fn describe(&self) -> Vec<$crate::ParameterInfo>;
            fn set(&mut self, key: &str, value: &$crate::Value) -> Result<(), $crate::SetError>;
            fn entries(&self) -> Vec<(&'static str, $crate::Value)>;
            fn create(&self, $argument: $argument_type) -> Box<dyn $behaviour>;
            fn boxed_clone(&self) -> Box<dyn ErasedSettings>;
            $(fn $check(&self) -> $outcome;)*
        }

        struct Erased<T: $definition>(T::Parameters);

        impl<T: $definition> ErasedSettings for Erased<T> {
            fn name(&self) -> &'static str {
                T::NAME
            }
            fn summary(&self) -> &'static str {
                T::SUMMARY
            }
            fn describe(&self) -> Vec<$crate::ParameterInfo> {
                <T::Parameters as $crate::ParameterSet>::describe()
            }
            fn set(&mut self, key: &str, value: &$crate::Value) -> Result<(), $crate::SetError> {
                $crate::ParameterSet::set(&mut self.0, key, value)
            }
            fn entries(&self) -> Vec<(&'static str, $crate::Value)> {
                $crate::ParameterSet::entries(&self.0)
            }
            fn create(&self, $argument: $argument_type) -> Box<dyn $behaviour> {
                Box::new(T::$new(&self.0, $argument))
            }
            fn boxed_clone(&self) -> Box<dyn ErasedSettings> {
                Box::new(Self(self.0.clone()))
            }
            $(
                fn $check(&self) -> $outcome {
                    T::$check(&self.0)
                }
            )*
        }
    };
}
