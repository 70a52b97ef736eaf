//! A browser for tests of pages: chromedriver over plain HTTP, as specified in the WebDriver standard (W3C) and chromedriver's documents.

#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use serde_json::{Value, json};
use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CHROMIUM: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// Longest time that a test waits for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Functions for scripts: the channels of a colour, and the contrast of two of them.
pub(crate) const CONTRAST: &str = r#"
    const channels = (colour) => {
        const canvas = document.createElement('canvas').getContext('2d');
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    // Relative luminance and contrast of WCAG 2.
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((value) => value / 255)
            .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const contrast = (a, b) => {
        const [low, high] = [a, b].map(luminance).sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
    };
"#;

/// A browser without a window, which ends when this value is dropped.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts a browser for the test `name`; `None` with a message if Chromium or chromedriver is not installed.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let (Some(driver), Some(chromium)) = (installed(&["chromedriver"]), installed(&CHROMIUM))
        else {
            let why = format!(
                "no page was opened in {name}: chromium or chromedriver is not on the PATH"
            );
            clearway_testing::skip("chromium", &why);
            return None;
        };
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{name}"));
        let _ = std::fs::remove_dir_all(&profile);
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver can be started");
        let port = port_of(&mut driver);
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            profile,
        };
        let opened = browser.call("POST", "/session", &browser.wishes(&chromium));
        let session = opened["sessionId"].as_str();
        browser.session = session.expect("a session has an id").to_owned();
        Some(browser)
    }

    fn wishes(&self, chromium: &Path) -> Value {
        let mut arguments: Vec<String> = [
            "headless",
            "no-sandbox",
            "disable-gpu",
            "disable-quic",
            "no-first-run",
            "disable-background-networking",
            "disable-component-update",
            "disable-sync",
            "disable-dev-shm-usage",
            "window-size=1200,900",
        ]
        .map(|flag| format!("--{flag}"))
        .into();
        arguments.push(format!("--user-data-dir={}", self.profile.display()));
        json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "binary": chromium, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        }}})
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&self, file: &Path) {
        self.navigate(&format!("file://{}", file.display()));
    }

    /// Opens an address and waits until it is loaded.
    pub(crate) fn navigate(&self, address: &str) {
        self.in_session("POST", "url", &json!({ "url": address }));
    }

    /// Runs the body of a function in the page, and returns its result.
    pub(crate) fn execute(&self, script: &str) -> Value {
        let body = json!({ "script": script, "args": [] });
        self.in_session("POST", "execute/sync", &body)
    }

    /// As [`execute`](Self::execute), for a script that returns a text.
    pub(crate) fn text(&self, script: &str) -> String {
        let value = self.execute(script);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{script}: {value}"))
            .to_owned()
    }

    /// As [`execute`](Self::execute), for a script that returns a number.
    pub(crate) fn number(&self, script: &str) -> f64 {
        let value = self.execute(script);
        value
            .as_f64()
            .unwrap_or_else(|| panic!("{script}: {value}"))
    }

    /// Sets the width and height of the window in pixels.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let body = json!({ "width": width, "height": height });
        self.in_session("POST", "window/rect", &body);
    }

    /// Shows pages as on a screen of this size in pixels, which may be narrower than any window.
    pub(crate) fn emulate_screen(&self, width: u32, height: u32) {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &screen);
    }

    /// Sets the colour scheme that the system prefers: `light` or `dark`.
    pub(crate) fn prefer_colours(&self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.devtools(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [feature] }),
        );
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        let body = json!({ "cmd": command, "params": parameters });
        self.in_session("POST", "goog/cdp/execute", &body);
    }

    /// Presses the mouse button at the first point of the visible part, moves to the second point, and releases the button.
    pub(crate) fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        let to_point = |(x, y): (f64, f64)| json!({ "type": "pointerMove", "duration": 50, "x": x.round(), "y": y.round() });
        let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
        let steps = json!([
            to_point(from),
            { "type": "pointerDown", "button": 0 },
            to_point(middle),
            to_point(to),
            { "type": "pointerUp", "button": 0 },
        ]);
        self.act(&steps);
    }

    /// Moves the mouse to a point of the visible part.
    pub(crate) fn hover(&self, (x, y): (f64, f64)) {
        self.act(
            &json!([{ "type": "pointerMove", "duration": 0, "x": x.round(), "y": y.round() }]),
        );
    }

    fn act(&self, steps: &Value) {
        let mouse = json!({
            "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": steps,
        });
        self.in_session("POST", "actions", &json!({ "actions": [mouse] }));
    }

    /// Sends a key to the element that has the focus; `\u{e00c}` is escape.
    pub(crate) fn press(&self, key: char) {
        let keys = json!({ "type": "key", "id": "keys", "actions": [
            { "type": "keyDown", "value": key.to_string() }, { "type": "keyUp", "value": key.to_string() },
        ]});
        self.in_session("POST", "actions", &json!({ "actions": [keys] }));
    }

    /// The visible part as PNG.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let image = self.in_session("GET", "screenshot", &Value::Null);
        from_base64(image.as_str().expect("an image in base64"))
    }

    /// The first element that a CSS selector finds, as PNG.
    pub(crate) fn picture_of(&self, selector: &str) -> Vec<u8> {
        // The whole element has to be visible.
        let found = format!("document.querySelector('{selector}')");
        let height = self.number(&format!("return {found}.getBoundingClientRect().height;"));
        let width = self.number("return window.outerWidth;");
        self.resize(width as u32, height as u32 + 600);
        self.execute(&format!("{found}.scrollIntoView();"));
        let found = json!({ "using": "css selector", "value": selector });
        let element = self.in_session("POST", "element", &found);
        let reference = element.as_object().and_then(|it| it.values().next());
        let reference = reference.and_then(Value::as_str).expect("an element");
        let path = format!("element/{reference}/screenshot");
        let image = self.in_session("GET", &path, &Value::Null);
        from_base64(image.as_str().expect("an image in base64"))
    }

    /// Messages of the console since the last call: level and text.
    pub(crate) fn log(&self) -> Vec<(String, String)> {
        let entries = self.in_session("POST", "se/log", &json!({ "type": "browser" }));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = entries.as_array().expect("a list of entries");
        entries
            .iter()
            .map(|entry| (text(&entry["level"]), text(&entry["message"])))
            .collect()
    }

    fn in_session(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(method, &format!("/session/{}/{path}", self.session), body)
    }

    /// Sends a request and returns the answer, which must not be an error.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self
            .request(method, path, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let mut answer: Value = serde_json::from_str(&answer)
            .unwrap_or_else(|error| panic!("{method} {path}: {error} in {answer}"));
        let value = answer["value"].take();
        assert!(
            value.get("error").is_none(),
            "{method} {path} {body}: {value}"
        );
        value
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            let end = reader.read_line(&mut line)? == 0 || line == "\r\n";
            if end {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The end of the session also ends the browser.
        let _ = self.request(
            "DELETE",
            &format!("/session/{}", self.session),
            &Value::Null,
        );
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// The first of the programs that is on the PATH.
fn installed(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    names.iter().find_map(|name| {
        env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    })
}

/// The port that chromedriver listens on, from its message "… was started successfully on port 41234."
fn port_of(driver: &mut Child) -> u16 {
    let output = driver.stdout.take().expect("its output is piped");
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let mut seen = String::new();
    for line in lines {
        if let Some((_, port)) = line.split_once("successfully on port ") {
            let digits = port.trim_end_matches('.');
            return digits.parse().expect("a port number");
        }
        seen += &line;
    }
    panic!("chromedriver does not say on which port it listens: {seen}");
}

fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for c in text.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
