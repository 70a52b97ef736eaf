//! Settings of plug-ins (controllers, path selectors) that are known by name, in this crate or outside it.

/// Generates the settings enum of one kind of plug-in: a variant for each type in the list and one for registered types of other crates.
/// `build` names the function of the definition trait that makes an instance.
macro_rules! settings_enum {
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
                Self::Custom($custom::defaults::<T>())
            }
            /// The name in a scenario.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$type as $definition>::NAME,)+
                    Self::Custom(custom) => custom.name(),
                }
            }
            /// One-line summary of the type.
            pub fn summary(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$type as $definition>::SUMMARY,)+
                    Self::Custom(custom) => custom.summary(),
                }
            }
            /// Every parameter with its default, meaning and source.
            pub fn describe(&self) -> Vec<ParameterInfo> {
                match self {
                    $(Self::$variant(_) => <$type as $definition>::Parameters::describe(),)+
                    Self::Custom(custom) => custom.describe(),
                }
            }
            /// Sets the parameter `key`.
            ///
            /// # Errors
            /// If the key does not exist or the value does not fit it.
            pub fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
                match self {
                    $(Self::$variant(parameters) => parameters.set(key, value),)+
                    Self::Custom(custom) => custom.set(key, value),
                }
            }
            /// Every parameter with its present value.
            pub fn entries(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(parameters) => parameters.entries(),)+
                    Self::Custom(custom) => custom.entries(),
                }
            }
            /// An instance with these settings.
            pub fn build(&self, $argument: $argument_type) -> $built {
                match self {
                    $(Self::$variant(parameters) => {
                        $built::$variant(<$type as $definition>::$new(parameters, $argument))
                    })+
                    Self::Custom(custom) => $built::Custom(custom.create($argument)),
                }
            }
        }

        clearway_units::plugin_settings! {
            $(#[$custom_meta])*
            settings: $custom,
            definition: $definition,
            behaviour: $behaviour,
            build: $new($argument: $argument_type),
            checks: [],
        }
    };
}

pub(crate) use settings_enum;
