//! Answers to pages on this machine, on a separate thread.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /report.html` | the report of the run, if the run is over and has written a report |
//! | `GET /api/state?since=EPOCH.COUNT` | progress of the run, and the samples that a page with COUNT samples of EPOCH lacks |
//! | `POST /api/control` | executes an order in JSON: `{"action": "pause"}`, `resume`, `stop`, or `step` with `"until": "150us"` |
//!
//! The server answers only its own pages. It listens on 127.0.0.1 only. A request must name this address or localhost, because a foreign
//! name may resolve to this machine, and must not come from a page of another origin. [`Connections`] bounds the number and the duration of
//! connections.

use super::connections::Connections;
use super::state::{Order, Refusal, Shared};
use crate::messages::warn;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use clearway_report_html::LivePage;
use serde_json::json;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::runtime;
use tokio::sync::oneshot;

/// A server, which ends on drop.
pub(super) struct Server {
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Data for the answers.
struct Site {
    shared: Arc<Shared>,
    page: LivePage,
    /// Valid names of this server in requests.
    hosts: Vec<String>,
}

impl Server {
    /// Listens on a port of this machine; port 0 chooses a free port.
    pub(super) fn start(port: u16, shared: Arc<Shared>, page: LivePage) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let site = Arc::new(Site {
            shared,
            page,
            hosts: hosts(port),
        });
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("live".into())
            .spawn(move || runtime.block_on(serve(listener, site, stopped)))?;
        Ok(Self {
            port,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends with its runtime, independently of its connections. A panic has already printed its message.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, site: Arc<Site>, stopped: oneshot::Receiver<()>) {
    let connections = match Connections::new(listener) {
        Ok(connections) => connections,
        Err(error) => {
            warn(&format!("the live view is not served: {error}"));
            return;
        }
    };
    let router = router(site);
    tokio::spawn(async move { axum::serve(connections, router).await });
    // The sender is dropped to stop the server, which gives an error here.
    let _ = stopped.await;
}

fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/report.html", get(report))
        .route("/favicon.ico", get(async || StatusCode::NO_CONTENT))
        .route("/api/state", get(state))
        .route("/api/control", post(control))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site)
}

/// The names of this machine with the port, in the form of the header `Host`.
fn hosts(port: u16) -> Vec<String> {
    let names = ["127.0.0.1", "localhost"];
    let full = names.iter().map(|name| format!("{name}:{port}"));
    // Browsers omit the default port of HTTP.
    let short = names.iter().filter(|_| port == 80).map(ToString::to_string);
    full.chain(short).collect()
}

async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut response = match stranger(request.uri(), request.headers(), &site.hosts) {
        Some(reason) => (StatusCode::FORBIDDEN, reason).into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Connections are short, see `connections`.
        (header::CONNECTION, "close"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Reason why a request does not come from a page of this server; `None` if it may.
fn stranger(address: &Uri, headers: &HeaderMap, hosts: &[String]) -> Option<&'static str> {
    let only = |name| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    };
    let own = |value: &[u8]| hosts.iter().any(|host| host.as_bytes() == value);
    // An absolute address takes precedence over the header: RFC 9112, section 3.2.2.
    let addressed = address
        .authority()
        .is_none_or(|authority| own(authority.as_str().as_bytes()));
    let called = only(header::HOST).is_some_and(|host| own(host.as_bytes()));
    if !addressed || !called || address.scheme_str().is_some_and(|scheme| scheme != "http") {
        return Some("this server is called 127.0.0.1 or localhost\n");
    }
    if !headers.contains_key(header::ORIGIN) {
        return None;
    }
    let origin = only(header::ORIGIN).and_then(|origin| origin.as_bytes().strip_prefix(b"http://"));
    match origin {
        Some(origin) if own(origin) => None,
        _ => Some("this server answers its own pages only\n"),
    }
}

async fn page(State(site): State<Arc<Site>>) -> Response {
    let policy = format!("{}; frame-ancestors 'none'", site.page.policy);
    let policy = [(header::CONTENT_SECURITY_POLICY, policy)];
    (policy, Html(site.page.html.clone())).into_response()
}

/// The current report: `why` may have rewritten it. The report contains its own content policy.
async fn report(State(site): State<Arc<Site>>) -> Response {
    let Some(file) = site.shared.report() else {
        return (StatusCode::NOT_FOUND, "there is no report\n").into_response();
    };
    match fs::read_to_string(&file) {
        Ok(html) => {
            let policy = [(header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'")];
            (policy, Html(html)).into_response()
        }
        Err(error) => {
            let text = format!("cannot read {}: {error}\n", file.display());
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

async fn state(State(site): State<Arc<Site>>, address: Uri) -> Response {
    let (epoch, count) = since(address.query()).unwrap_or((u32::MAX, 0));
    let json = [(header::CONTENT_TYPE, "application/json")];
    match site.shared.json(&site.shared.view(epoch, count)) {
        Ok(text) => (json, text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// `since=3.217` as (3, 217).
fn since(query: Option<&str>) -> Option<(u32, usize)> {
    let (epoch, count) = query?.strip_prefix("since=")?.split_once('.')?;
    Some((epoch.parse().ok()?, count.parse().ok()?))
}

async fn control(
    State(site): State<Arc<Site>>,
    order: Result<Json<Order>, JsonRejection>,
) -> Response {
    let refuse =
        |status, reason: String| (status, Json(json!({ "error": reason }))).into_response();
    let order = match order {
        Ok(Json(order)) => order,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    match site.shared.order(order) {
        Ok(()) => Json(json!({})).into_response(),
        Err(refusal @ Refusal::Over) => refuse(StatusCode::CONFLICT, refusal.to_string()),
        Err(refusal) => refuse(StatusCode::UNPROCESSABLE_ENTITY, refusal.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn is_strange(headers: &[(HeaderName, &'static str)]) -> bool {
        let headers = headers
            .iter()
            .cloned()
            .map(|(name, value)| (name, HeaderValue::from_static(value)));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        let address = Uri::from_static("/api/state");
        stranger(&address, &map, &hosts(8000)).is_some()
    }

    #[test]
    fn an_absolute_address_names_this_server() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8000"));
        let is_strange = |address| {
            let address = Uri::from_static(address);
            stranger(&address, &headers, &hosts(8000)).is_some()
        };
        for own in ["/", "http://127.0.0.1:8000/", "http://localhost:8000/api"] {
            assert!(!is_strange(own), "{own}");
        }
        for foreign in [
            "http://evil.example/",
            "http://evil.example:8000/",
            "http://127.0.0.1:8001/",
            "http://127.0.0.1/",
            "http://user@127.0.0.1:8000/",
            "https://127.0.0.1:8000/",
            "127.0.0.1:8001",
        ] {
            assert!(is_strange(foreign), "{foreign}");
        }
    }

    #[test]
    fn only_pages_of_this_server_are_answered() {
        use header::{HOST, ORIGIN};
        for host in ["127.0.0.1:8000", "localhost:8000"] {
            assert!(!is_strange(&[(HOST, host)]));
            assert!(!is_strange(&[
                (HOST, host),
                (ORIGIN, "http://127.0.0.1:8000")
            ]));
            for origin in [
                "http://evil.example",
                "http://127.0.0.1:8001",
                "http://127.0.0.1",
                "https://127.0.0.1:8000",
                "null",
                "",
            ] {
                assert!(is_strange(&[(HOST, host), (ORIGIN, origin)]), "{origin}");
            }
            let two = [
                (HOST, host),
                (ORIGIN, "http://127.0.0.1:8000"),
                (ORIGIN, "http://evil.example"),
            ];
            assert!(is_strange(&two));
            assert!(is_strange(&[(HOST, host), (HOST, "evil.example:8000")]));
        }
        for host in [
            "evil.example:8000",
            "127.0.0.1:8001",
            "127.0.0.1",
            "127.0.0.1.evil.example:8000",
            "[::1]:8000",
            "",
        ] {
            assert!(is_strange(&[(HOST, host)]), "{host}");
        }
        assert!(is_strange(&[]));
        assert!(hosts(80).contains(&"localhost".to_owned()));
    }

    #[test]
    fn what_a_page_has_is_read_from_its_question() {
        assert_eq!(since(Some("since=3.217")), Some((3, 217)));
        for wrong in ["", "since=", "since=-1.0", "since=3", "since=3.x", "x=3.1"] {
            assert_eq!(since(Some(wrong)), None, "{wrong}");
        }
        assert_eq!(since(None), None);
    }
}
