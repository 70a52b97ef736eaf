//! Names of inline scripts and styles in a content security policy.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac_sha256::Hash;

/// The name of an inline script or style in the policy: `'sha256-…'`, in base64.
pub(super) fn source_expression(text: &str) -> String {
    let hash = Hash::hash(text.as_bytes());
    format!("'sha256-{}'", BASE64_STANDARD.encode(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf abc | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn a_text_is_named_by_its_hash() {
        let name = "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='";
        assert_eq!(source_expression("abc"), name);
    }
}
