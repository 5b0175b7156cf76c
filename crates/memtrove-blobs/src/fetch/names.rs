//! From names to addresses that may be connected to.

use super::is_public;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Who knows where a name leads.
pub trait Names: Debug + Send + Sync + 'static {
    /// The addresses of a host.
    fn look_up(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;

    /// What to connect to instead of an address that was found public; port 0 is the one of the url, or its scheme's. A
    /// test has no public address to offer, and leads from one to its own machine here.
    fn route(&self, address: IpAddr) -> SocketAddr {
        SocketAddr::new(address, 0)
    }
}

/// The names that this machine knows.
#[derive(Debug, Clone, Copy)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A name led to an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to an address that is not public")]
pub(super) struct Refused;

/// Lets through only names all of whose addresses are public: of a name that leads elsewhere too, it is unknown which one is
/// connected to.
pub(super) struct Checked(pub(super) Arc<dyn Names>);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.0.clone();
        Box::pin(async move {
            let found = names.look_up(name.as_str().to_owned()).await?;
            if !found.iter().copied().all(is_public) {
                return Err(Refused.into());
            }
            let routed: Vec<SocketAddr> = found.into_iter().map(|address| names.route(address)).collect();
            Ok(Box::new(routed.into_iter()) as Addrs)
        })
    }
}
