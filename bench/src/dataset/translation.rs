//! The same request over another transport: a call that asks for the same.

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use memtrove_proto::json;
use memtrove_proto::v1;
use prost::Message;
use serde_json::Value;
use uuid::Uuid;

/// REST requests as calls, in the same order.
pub fn as_calls(requests: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let translate = |request: &Vec<u8>| {
        let rest = Rest::read(request)?;
        let made = rest.call()?;
        let path = format!("/memory.v1.EntriesService/{}", made.method);
        Ok(call(&path, rest.user, &made.message))
    };
    requests.iter().map(translate).collect()
}

/// The call of a user with this message, written as a request of HTTP/1.1.
pub fn call(path: &str, user: &str, message: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nAuthorization: Bearer {user}\r\nX-API-Key: bench-agent\r\n\
         Content-Type: application/grpc\r\nTE: trailers\r\n\r\n"
    )
    .into_bytes();
    // Not compressed, and so long.
    request.push(0);
    request.extend_from_slice(&(message.len() as u32).to_be_bytes());
    request.extend_from_slice(message);
    request
}

/// A request over HTTP/1.1, taken apart.
struct Rest<'a> {
    method: &'a str,
    path: &'a str,
    user: &'a str,
    body: &'a [u8],
}

/// A call of the service for entries.
struct Call {
    method: &'static str,
    message: Vec<u8>,
}

impl<'a> Rest<'a> {
    fn read(request: &'a [u8]) -> Result<Self> {
        let end =
            request.windows(4).position(|window| window == b"\r\n\r\n").context("a request without end")?;
        let head = std::str::from_utf8(&request[..end])?;
        let (first, fields) = head.split_once("\r\n").context("a request without fields")?;
        let (method, rest) = first.split_once(' ').context("a request without a method")?;
        let (path, _) = rest.split_once(' ').context("a request without a path")?;
        let user = fields.lines().find_map(|line| line.strip_prefix("Authorization: Bearer "));
        Ok(Self { method, path, user: user.context("a request without a user")?, body: &request[end + 4..] })
    }

    fn call(&self) -> Result<Call> {
        let rest = self.path.strip_prefix("/v1/conversations/").context("a request of another surface")?;
        let (id, what) = rest.split_once('/').context("a request for a conversation")?;
        let conversation_id = Bytes::copy_from_slice(Uuid::parse_str(id)?.as_bytes());
        let (method, message) = match (self.method, what.split_once('?').unwrap_or((what, ""))) {
            ("POST", ("entries", "")) => {
                let entry = Some(self.entry()?);
                ("AppendEntry", v1::AppendEntryRequest { conversation_id, entry }.encode_to_vec())
            }
            ("POST", ("entries/sync", "")) => {
                let entry = Some(self.entry()?);
                ("SyncEntries", v1::SyncEntriesRequest { conversation_id, entry }.encode_to_vec())
            }
            ("GET", ("entries", query)) => {
                let limit =
                    query.strip_prefix("tail=true&limit=").context("a page that is not the newest")?;
                let page = v1::PageRequest { page_token: String::new(), page_size: limit.parse()? };
                let message = v1::ListEntriesRequest {
                    conversation_id,
                    page: Some(page),
                    tail: Some(true),
                    ..v1::ListEntriesRequest::default()
                };
                ("ListEntries", message.encode_to_vec())
            }
            _ => bail!("no call is known for {} {}", self.method, self.path),
        };
        Ok(Call { method, message })
    }

    fn entry(&self) -> Result<v1::CreateEntryRequest> {
        let body: Value = serde_json::from_slice(self.body)?;
        let channel = match body["channel"].as_str() {
            Some("memory") => v1::Channel::Memory,
            _ => v1::Channel::History,
        };
        let content = body["content"].as_array().context("an entry without content")?;
        Ok(v1::CreateEntryRequest {
            channel: channel.into(),
            content_type: body["contentType"].as_str().unwrap_or_default().to_owned(),
            content: content.iter().map(|item| json::Value::from_json(&item.to_string())).collect(),
            ..v1::CreateEntryRequest::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Writer;
    use crate::dataset::conversations as requests;

    const ID: &str = "019b76da-a800-7000-8000-000000000001";

    #[test]
    fn a_call_asks_for_what_the_request_asks_for() {
        let request = requests::append("alice", ID, "good morning");
        let read = Rest::read(&request).unwrap();
        assert_eq!((read.method, read.user), ("POST", "alice"));
        let call = read.call().unwrap();
        let message = v1::AppendEntryRequest::decode(&*call.message).unwrap();
        assert_eq!(message.conversation_id, Uuid::parse_str(ID).unwrap().as_bytes()[..]);
        let mut content = String::new();
        message.entry.unwrap().content[0].write_json(&mut content, 8).unwrap();
        assert_eq!(content, r#"{"role":"USER","text":"good morning"}"#);
    }

    #[test]
    fn requests_of_one_kind_become_calls_of_one_method() {
        let sync = requests::sync("alice", ID, 3, &mut Writer::new(1));
        assert_eq!(Rest::read(&sync).unwrap().call().unwrap().method, "SyncEntries");
        let page = requests::newest_page("alice", ID, 50);
        let call = Rest::read(&page).unwrap().call().unwrap();
        let message = v1::ListEntriesRequest::decode(&*call.message).unwrap();
        assert_eq!((message.page.unwrap().page_size, message.tail), (50, Some(true)));
        assert!(as_calls(&[requests::list("alice")]).is_err());
    }
}
