//! Ends of a transfer by quinn, with its default settings and the socket buffers that `clearway-udp` asks for.

use crate::end::{CHUNK, EndArguments, EndReport, Listening, Meter};
use crate::failure::Failure;
use bytes::Bytes;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, ServerConfig, TokioRuntime,
};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::task::JoinSet;

const NAME: &str = "receiver";
/// Size of the sockets' buffers, as `clearway-udp` asks for it.
const SOCKET_BUFFER: usize = 4 << 20;
/// Chunks that are read with one call.
const CHUNKS: usize = 32;

fn endpoint(address: SocketAddr, server: Option<ServerConfig>) -> Result<Endpoint, Failure> {
    let socket = UdpSocket::bind(address)?;
    let buffers = socket2::SockRef::from(&socket);
    buffers.set_recv_buffer_size(SOCKET_BUFFER)?;
    buffers.set_send_buffer_size(SOCKET_BUFFER)?;
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new(
        EndpointConfig::default(),
        server,
        socket,
        runtime,
    )?)
}

/// Takes one transfer. Calls `listening` once it can come.
pub(crate) async fn receive(
    arguments: &EndArguments,
    listening: impl FnOnce(Listening),
) -> Result<EndReport, Failure> {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()])
        .map_err(|error| Failure::new(format!("cannot make a certificate: {error}")))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let certificate = own.cert.der().clone();
    let digits = certificate
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let config = ServerConfig::with_single_cert(vec![certificate], key)
        .map_err(|error| Failure::new(format!("quinn does not take its certificate: {error}")))?;
    let endpoint = endpoint(arguments.address, Some(config))?;
    listening(Listening {
        address: endpoint.local_addr()?,
        certificate: digits,
    });
    let closed = || Failure::new("quinn's endpoint was closed");
    let connection = endpoint.accept().await.ok_or_else(closed)?.await?;
    let meter = Meter::start();
    let mut streams = JoinSet::new();
    for _ in 0..arguments.streams {
        streams.spawn(count(connection.accept_uni().await?));
    }
    let mut bytes = 0;
    while let Some(counted) = streams.join_next().await {
        bytes += counted.map_err(|_| closed())??;
    }
    let report = meter.report(bytes);
    let mut answer = connection.open_uni().await?;
    answer.write_all(&bytes.to_be_bytes()).await?;
    answer.finish()?;
    connection.closed().await;
    endpoint.wait_idle().await;
    Ok(report)
}

/// Bytes of a stream. They are handed over as they lie in the datagrams, without a copy.
async fn count(mut stream: RecvStream) -> Result<u64, Failure> {
    let mut buffers: [Bytes; CHUNKS] = std::array::from_fn(|_| Bytes::new());
    let mut bytes = 0;
    while let Some(chunks) = stream.read_chunks(&mut buffers).await? {
        bytes += buffers[..chunks]
            .iter()
            .map(|chunk| chunk.len() as u64)
            .sum::<u64>();
    }
    Ok(bytes)
}

fn certificate(digits: &str) -> Result<CertificateDer<'static>, Failure> {
    let byte = |at| {
        let digits = digits.get(at..at + 2);
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
    };
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let wrong = || Failure::new("the certificate is no hexadecimal number");
    Ok(CertificateDer::from(bytes.ok_or_else(wrong)?))
}

/// Writes streams for the time of the arguments.
pub(crate) async fn send(arguments: &EndArguments) -> Result<EndReport, Failure> {
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate(&arguments.certificate)?)
        .map_err(|error| Failure::new(format!("the certificate is not good: {error}")))?;
    let config = ClientConfig::with_root_certificates(Arc::new(roots))
        .map_err(|error| Failure::new(format!("quinn does not take its certificate: {error}")))?;
    let endpoint = endpoint((Ipv4Addr::UNSPECIFIED, 0).into(), None)?;
    let connecting = endpoint.connect_with(config, arguments.address, NAME);
    let connection = connecting
        .map_err(|error| Failure::new(error.to_string()))?
        .await?;
    let meter = Arc::new(Meter::start());
    let mut streams = JoinSet::new();
    for _ in 0..arguments.streams {
        streams.spawn(write(
            connection.clone(),
            Arc::clone(&meter),
            arguments.time(),
        ));
    }
    while let Some(written) = streams.join_next().await {
        written.map_err(|_| Failure::new("a stream of quinn was not written"))??;
    }
    let mut answer = connection.accept_uni().await?;
    let mut counted = [0; 8];
    answer
        .read_exact(&mut counted)
        .await
        .map_err(|error| Failure::new(error.to_string()))?;
    let report = meter.report(u64::from_be_bytes(counted));
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(report)
}

async fn write(
    connection: Connection,
    meter: Arc<Meter>,
    time: std::time::Duration,
) -> Result<(), Failure> {
    let content = Bytes::from(vec![0x5a; CHUNK]);
    let mut stream = connection.open_uni().await?;
    while meter.elapsed() < time {
        stream.write_chunk(content.clone()).await?;
    }
    stream.finish()?;
    Ok(())
}
