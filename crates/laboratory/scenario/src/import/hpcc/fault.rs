//! Errors with their line.

use crate::error::{ScenarioError, SourceLocation};
use clearway_formats::HpccSetting;

/// An error at a setting of the file at `path`.
pub(super) fn at(
    path: &str,
    setting: &HpccSetting,
    message: impl Into<String>,
    fix: impl Into<String>,
) -> ScenarioError {
    let place = SourceLocation::Line {
        file: path.into(),
        line: setting.line,
    };
    ScenarioError::at(&place, message, fix)
}
