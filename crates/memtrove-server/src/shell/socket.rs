//! A TCP connection whose peer must take what is written.

use super::connection::Connection;
use super::pace::{Pace, Patience};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until};

/// When a peer that says nothing is asked whether it is still there, how often, and how many times.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(10), 6);

/// How many bytes the system takes that it cannot send yet. Without this it takes megabytes, which are not counted, and
/// reports so late what the peer took that a slow reader looks like one who reads nothing.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 256 * 1024;

/// Sets what the connections of a listener inherit, once for all of them.
pub(super) fn prepare(listener: &TcpListener) {
    let socket = SockRef::from(listener);
    let (time, interval, retries) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(time).with_interval(interval).with_retries(retries);
    if let Err(error) = socket.set_tcp_keepalive(&keepalive) {
        tracing::debug!(%error, "cannot set TCP keep-alive");
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = socket.set_tcp_notsent_lowat(UNSENT) {
        tracing::debug!(%error, "cannot set TCP_NOTSENT_LOWAT");
    }
}

/// Fails where the peer does not take what is written, or too slowly. Nothing to write is no reason.
pub(super) struct Socket {
    stream: TcpStream,
    pace: Pace,
    /// Made when the peer keeps us waiting.
    sleep: Option<Pin<Box<Sleep>>>,
    connection: Arc<Connection>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, patience: Patience, connection: Arc<Connection>) -> Self {
        Self { stream, pace: Pace::new(patience), sleep: None, connection }
    }

    fn watch(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            if let Ok(bytes) = written {
                self.pace.moved(bytes);
            }
            return Poll::Ready(written);
        }
        let until = self.pace.wait(Instant::now());
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx).map(|()| {
            self.connection.abandon();
            Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not take what it asked for"))
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The system would otherwise go on offering the rest to a peer that does not take it.
        if self.connection.is_abandoned() {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        prepare(&listener);
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (listener.accept().await.unwrap().0, client)
    }

    #[tokio::test]
    async fn a_peer_that_vanished_is_noticed() {
        let (server, _client) = pair().await;
        let socket = SockRef::from(&server);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE.0);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE.1);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE.2);
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up_and_one_that_is_asked_nothing_is_not() {
        let (server, mut client) = pair().await;
        let connection = Connection::new(None);
        let patience = Patience { stall: Duration::from_millis(100), rate: 16 * 1024 };
        let mut socket = Socket::new(server, patience, Arc::clone(&connection));
        for _ in 0..3 {
            socket.write_all(b"tick").await.unwrap();
            client.read_exact(&mut [0; 4]).await.unwrap();
            tokio::time::sleep(patience.stall * 2).await;
        }
        let error = socket.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(connection.is_abandoned());
        drop(socket);
        let mut rest = Vec::new();
        let reset = client.read_to_end(&mut rest).await.unwrap_err();
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
    }
}
