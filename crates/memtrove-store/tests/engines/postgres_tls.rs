//! TLS to PostgreSQL: which server is believed, by `sslmode` and by the authority that is configured.
use memtrove_store::AllTenants;
use memtrove_store::postgres::{self, PostgresConfig};
use memtrove_testkit::postgres::Database;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// What a client that wants TLS says first.
const TLS_PLEASE: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A front that speaks TLS before the shared server, which was built without it. It is `localhost` by its certificate.
struct Front {
    database: Arc<Database>,
    port: u16,
    handshakes: Arc<AtomicUsize>,
    folder: TempDir,
    _runtime: tokio::runtime::Runtime,
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl Front {
    fn start(offers_tls: bool) -> Self {
        let (ca, other, key) = (authority("ours"), authority("another"), KeyPair::generate().unwrap());
        let certificate =
            CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), ca.pem()).unwrap();
        std::fs::write(folder.path().join("other.pem"), other.pem()).unwrap();
        let settings = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            );
        let acceptor = offers_tls.then(|| TlsAcceptor::from(Arc::new(settings.unwrap())));

        let database = Database::fresh();
        let behind = database.url().split(['@', '/']).nth(3).unwrap().to_owned();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (port, handshakes) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let counted = handshakes.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, behind.clone(), acceptor.clone(), counted.clone()));
            }
        });
        Self { database, port, handshakes, folder, _runtime: runtime }
    }

    /// Connects to it under this name; whether that went through TLS, or why it did not work.
    fn connect(&self, host: &str, mode: &str, ca: Option<&str>) -> Result<bool, String> {
        let before = self.handshakes.load(Ordering::SeqCst);
        let (name, port) = (self.database.name(), self.port);
        let config = PostgresConfig {
            url: format!("postgres://memtrove:hush@{host}:{port}/{name}?sslmode={mode}"),
            tls_ca: ca.map(|file| self.file(file)),
            ..PostgresConfig::default()
        };
        let looked =
            postgres::look(&config, AllTenants.into(), |_| Ok(())).map_err(|error| error.to_string());
        looked.map(|()| self.handshakes.load(Ordering::SeqCst) > before)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

async fn forward(
    mut client: TcpStream,
    behind: String,
    acceptor: Option<TlsAcceptor>,
    handshakes: Arc<AtomicUsize>,
) -> Option<()> {
    let mut server = TcpStream::connect(behind).await.ok()?;
    let mut first = [0; 8];
    client.read_exact(&mut first).await.ok()?;
    match acceptor {
        Some(acceptor) if first == TLS_PLEASE => {
            client.write_all(b"S").await.ok()?;
            let mut client = acceptor.accept(client).await.ok()?;
            handshakes.fetch_add(1, Ordering::SeqCst);
            copy_bidirectional(&mut client, &mut server).await.ok()?;
        }
        None if first == TLS_PLEASE => {
            client.write_all(b"N").await.ok()?;
            copy_bidirectional(&mut client, &mut server).await.ok()?;
        }
        _ => {
            server.write_all(&first).await.ok()?;
            copy_bidirectional(&mut client, &mut server).await.ok()?;
        }
    }
    Some(())
}

#[test]
fn a_server_is_believed_as_far_as_it_proves_who_it_is() {
    let front = Front::start(true);
    let believed = |host: &str, mode: &str, ca: Option<&str>, tls: bool| {
        assert_eq!(front.connect(host, mode, ca), Ok(tls), "{host} {mode} {ca:?}");
    };
    let refused = |host: &str, mode: &str, ca: Option<&str>, why: &str| {
        let said = front.connect(host, mode, ca).unwrap_err();
        assert!(said.contains(why) && said.contains(host), "{host} {mode} {ca:?}: {said}");
        assert!(!said.contains("hush"), "{said}");
    };
    let (ours, others) = (Some("ca.pem"), Some("other.pem"));
    believed("localhost", "disable", None, false);
    believed("localhost", "prefer", None, true);
    believed("127.0.0.1", "require", None, true);
    believed("127.0.0.1", "require", ours, true);
    refused("localhost", "require", others, "UnknownIssuer");
    believed("127.0.0.1", "verify-ca", ours, true);
    refused("localhost", "verify-ca", others, "UnknownIssuer");
    refused("localhost", "verify-ca", None, "UnknownIssuer");
    believed("localhost", "verify-full", ours, true);
    refused("127.0.0.1", "verify-full", ours, "not valid for name");
    refused("localhost", "verify-full", others, "UnknownIssuer");
    refused("localhost", "verify-full", None, "UnknownIssuer");
}

#[test]
fn a_server_without_tls_is_used_only_by_who_does_not_ask_for_it() {
    let front = Front::start(false);
    assert_eq!(front.connect("localhost", "disable", None), Ok(false));
    assert_eq!(front.connect("localhost", "prefer", None), Ok(false));
    for (mode, ca) in [("require", None), ("verify-ca", Some("ca.pem")), ("verify-full", Some("ca.pem"))] {
        let said = front.connect("localhost", mode, ca).unwrap_err();
        assert!(said.contains("server does not support TLS"), "{mode}: {said}");
    }
}
