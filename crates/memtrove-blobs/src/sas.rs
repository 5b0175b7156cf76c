//! Links to blobs in Azure: service SAS, signed with the key of the account.
//!
//! Written out because a link has to say with which type and disposition the store answers, and `object_store` signs none
//! of that.

use crate::{AzureConfig, BlobError};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use std::time::{Duration, SystemTime};

/// The version of the service whose rules the signature follows.
const VERSION: &str = "2020-12-06";

/// The key of a storage account, and what it opens.
pub(crate) struct SharedKey {
    key: hmac::Key,
    account: String,
    container: String,
    /// The address of the container.
    address: String,
    only_https: bool,
}

impl SharedKey {
    /// `endpoint` is the address of the account if it is not Microsoft's.
    pub(crate) fn new(config: &AzureConfig, endpoint: Option<String>, key: &str) -> Result<Self, BlobError> {
        let key = STANDARD.decode(key.trim());
        let key =
            key.map_err(|_| BlobError::Invalid("the access key of the account is not base64".into()))?;
        let AzureConfig { account, container, .. } = config;
        let endpoint = match endpoint {
            Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
            None => format!("https://{account}.blob.core.windows.net"),
        };
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            account: account.clone(),
            container: container.clone(),
            only_https: endpoint.starts_with("https:"),
            address: format!("{endpoint}/{container}"),
        })
    }

    /// A link with which anybody may read this blob for a while, from now on.
    pub(crate) fn link(
        &self,
        path: &str,
        lasting: Duration,
        content_type: Option<&str>,
        disposition: Option<&str>,
    ) -> Result<String, BlobError> {
        #[expect(clippy::disallowed_methods, reason = "the store judges a link by the clock on the wall")]
        let now = SystemTime::now();
        let end = now.checked_add(lasting).ok_or_else(too_long)?;
        self.link_until(path, end, content_type, disposition)
    }

    fn link_until(
        &self,
        path: &str,
        end: SystemTime,
        content_type: Option<&str>,
        disposition: Option<&str>,
    ) -> Result<String, BlobError> {
        let end = Timestamp::try_from(end).map_err(|_| too_long())?;
        let end = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let protocol = if self.only_https { "https" } else { "https,http" };
        let (disposition, content_type) = (disposition.unwrap_or_default(), content_type.unwrap_or_default());
        let resource = format!("/blob/{}/{}/{path}", self.account, self.container);
        // Permissions, start, end, resource, identifier, address, protocol, version, kind, snapshot, encryption scope, and
        // the headers of the answer: cache, disposition, encoding, language, type.
        let signed = [
            "r",
            "",
            &end,
            &resource,
            "",
            "",
            protocol,
            VERSION,
            "b",
            "",
            "",
            "",
            disposition,
            "",
            "",
            content_type,
        ];
        let signature = STANDARD.encode(hmac::sign(&self.key, signed.join("\n").as_bytes()));
        let query = [
            ("sv", VERSION),
            ("sr", "b"),
            ("sp", "r"),
            ("se", &end),
            ("spr", protocol),
            ("rscd", disposition),
            ("rsct", content_type),
            ("sig", &signature),
        ];
        let query = query.into_iter().filter(|(_, value)| !value.is_empty());
        let address = format!("{}/{path}", self.address);
        let url = reqwest::Url::parse_with_params(&address, query);
        url.map(String::from).map_err(|_| BlobError::Invalid("the endpoint is not an address".into()))
    }
}

fn too_long() -> BlobError {
    BlobError::Invalid("a link lasts too long".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SharedKey {
        let config = AzureConfig { account: "acc".into(), container: "con".into(), ..AzureConfig::default() };
        SharedKey::new(&config, None, "a2V5").unwrap()
    }

    /// The digest was computed by another program, from the documentation of the service.
    #[test]
    fn a_signature_is_what_the_service_computes_too() {
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let disposition = "attachment; filename=\"a b\"";
        assert_eq!(
            key().link_until("a/b", end, Some("text/plain"), Some(disposition)).unwrap(),
            "https://acc.blob.core.windows.net/con/a/b?sv=2020-12-06&sr=b&sp=r&se=2027-01-15T08%3A00%3A00Z&spr=https\
             &rscd=attachment%3B+filename%3D%22a+b%22&rsct=text%2Fplain&sig=HMZpqeCWbKEY822f5HGbRSZoDelVzffPLUA5mpLeFLE%3D"
        );
    }

    #[test]
    fn a_link_that_would_outlast_time_is_refused() {
        for lasting in [Duration::MAX, Duration::from_secs(u64::from(u32::MAX) * 1_000_000)] {
            assert!(
                matches!(key().link("a/b", lasting, None, None), Err(BlobError::Invalid(_))),
                "{lasting:?}"
            );
        }
    }

    #[test]
    fn a_link_says_what_it_allows_and_is_signed_with_all_of_it() {
        let key = key();
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let link = |path, kind, disposition| key.link_until(path, end, kind, disposition).unwrap();
        let one = link("a/b", Some("text/plain"), Some("attachment; filename=\"a b\""));
        assert!(
            one.starts_with(
                "https://acc.blob.core.windows.net/con/a/b?sv=2020-12-06&sr=b&sp=r&se=2027-01-15T08"
            ),
            "{one}"
        );
        let signature = |link: &str| link.split("sig=").nth(1).map(str::to_owned).unwrap();
        for other in [
            link("a/c", Some("text/plain"), Some("attachment; filename=\"a b\"")),
            link("a/b", Some("text/html"), Some("attachment; filename=\"a b\"")),
            link("a/b", Some("text/plain"), None),
        ] {
            assert_ne!(signature(&one), signature(&other), "{other}");
        }
    }

    #[test]
    fn a_key_that_is_none_is_refused_without_being_shown() {
        let error = SharedKey::new(&AzureConfig::default(), None, "!hush!").err().unwrap();
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}
