//! Settings of plug-ins (controllers, path selectors) that are known by name, in this crate or outside it.

/// Generates the settings enum of one kind of plug-in: a variant for each type in the list and one for registered types of
/// other crates, which are kept behind an object-safe adaptor over the kind's definition trait. `build` names the function of that
/// trait which makes an instance.
macro_rules! plugin_settings {
    (
        $(#[$settings_meta:meta])*
        settings: $settings:ident,
        $(#[$custom_meta:meta])*
        custom: $custom:ident,
        definition: $definition:ident,
        behaviour: $behaviour:ident,
        built: $built:ident,
        build: $new:ident($argument:ident: $argument_type:ty),
        types: [$($variant:ident($type:ty)),+],
    ) => {
        $(#[$settings_meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $settings {
            $(
                #[doc = concat!("Settings of [`", stringify!($type), "`].")]
                $variant(<$type as $definition>::Parameters),
            )+
            /// Settings of a type of another crate.
            Custom($custom),
        }

        impl $settings {
            /// Name and one-line summary of each type in this crate.
            pub const BUILTIN: &'static [(&'static str, &'static str)] =
                &[$((<$type as $definition>::NAME, <$type as $definition>::SUMMARY)),+];

            /// Default settings of the type of this crate that is called `name`.
            pub fn named(name: &str) -> Option<Self> {
                $(
                    if name == <$type as $definition>::NAME {
                        return Some(Self::$variant(Default::default()));
                    }
                )+
                None
            }
            /// Default settings of a type of another crate.
            pub fn custom<T: $definition>() -> Self {
                Self::Custom($custom(Box::new(Erased::<T>(Default::default()))))
            }
            /// The name in a scenario.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$type as $definition>::NAME,)+
                    Self::Custom(custom) => custom.0.name(),
                }
            }
            /// One-line summary of the type.
            pub fn summary(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$type as $definition>::SUMMARY,)+
                    Self::Custom(custom) => custom.0.summary(),
                }
            }
            /// Every parameter with its default, meaning and source.
            pub fn describe(&self) -> Vec<ParameterInfo> {
                match self {
                    $(Self::$variant(_) => <$type as $definition>::Parameters::describe(),)+
                    Self::Custom(custom) => custom.0.describe(),
                }
            }
            /// Sets the parameter `key`.
            ///
            /// # Errors
            /// If there is no such key or the value does not fit it.
            pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
                match self {
                    $(Self::$variant(parameters) => parameters.set(key, value),)+
                    Self::Custom(custom) => custom.0.set(key, value),
                }
            }
            /// Every parameter with its present value.
            pub fn entries(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(parameters) => parameters.entries(),)+
                    Self::Custom(custom) => custom.0.entries(),
                }
            }
            /// An instance with these settings.
            pub fn build(&self, $argument: $argument_type) -> $built {
                match self {
                    $(Self::$variant(parameters) => {
                        $built::$variant(<$type as $definition>::$new(parameters, $argument))
                    })+
                    Self::Custom(custom) => $built::Custom(custom.0.build($argument)),
                }
            }
        }

        $(#[$custom_meta])*
        pub struct $custom(Box<dyn ErasedSettings>);

        impl Clone for $custom {
            fn clone(&self) -> Self {
                Self(self.0.boxed_clone())
            }
        }

        impl PartialEq for $custom {
            fn eq(&self, other: &Self) -> bool {
                self.0.name() == other.0.name() && self.0.entries() == other.0.entries()
            }
        }

        impl std::fmt::Debug for $custom {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(self.0.name()).field(&self.0.entries()).finish()
            }
        }

        trait ErasedSettings: Send + Sync {
            fn name(&self) -> &'static str;
            fn summary(&self) -> &'static str;
            fn describe(&self) -> Vec<ParameterInfo>;
            fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError>;
            fn entries(&self) -> Vec<(&'static str, Value)>;
            fn build(&self, $argument: $argument_type) -> Box<dyn $behaviour>;
            fn boxed_clone(&self) -> Box<dyn ErasedSettings>;
        }

        struct Erased<T: $definition>(T::Parameters);

        impl<T: $definition> ErasedSettings for Erased<T> {
            fn name(&self) -> &'static str {
                T::NAME
            }
            fn summary(&self) -> &'static str {
                T::SUMMARY
            }
            fn describe(&self) -> Vec<ParameterInfo> {
                T::Parameters::describe()
            }
            fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
                self.0.set(key, value)
            }
            fn entries(&self) -> Vec<(&'static str, Value)> {
                self.0.entries()
            }
            fn build(&self, $argument: $argument_type) -> Box<dyn $behaviour> {
                Box::new(T::$new(&self.0, $argument))
            }
            fn boxed_clone(&self) -> Box<dyn ErasedSettings> {
                Box::new(Self(self.0.clone()))
            }
        }
    };
}

pub(crate) use plugin_settings;
