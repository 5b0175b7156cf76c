//! Attachments: up, down, by a link, and from the web.

use crate::support::*;
use memtrove_client::attachments::{AttachmentStatus, CreateAttachmentRequest, DownloadOptions, Upload};

pub async fn chapter(world: &World) {
    let alice = world.agent("alice");
    let bytes = alice
        .upload_attachment(Upload::bytes("plan é.txt", "one two").content_type("text/plain"))
        .await
        .unwrap();
    assert_eq!((bytes.filename.as_deref(), bytes.size), (Some("plan é.txt"), Some(7)));

    let pieces = ["first ", "second"].map(|piece| Ok::<_, std::io::Error>(piece.as_bytes()));
    let upload =
        Upload::stream("b.bin", futures_util::stream::iter(pieces)).expires_in(Duration::from_secs(600));
    let streamed = alice.upload_attachment(upload).await.unwrap();
    assert_eq!((streamed.size, streamed.status), (Some(12), AttachmentStatus::Ready));

    let download = alice.get_attachment(bytes.id, DownloadOptions::default()).await.unwrap();
    assert!(download.content_type().unwrap().starts_with("text/plain"));
    assert_eq!(download.content_length(), Some(7));
    let pieces: Vec<bytes::Bytes> = download.into_stream().try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"one two");
    let etag = alice.get_attachment(bytes.id, DownloadOptions::default()).await.unwrap();
    let etag = etag.etag().map(str::to_owned);
    let options = DownloadOptions { if_none_match: etag, ..DownloadOptions::default() };
    let known = alice.get_attachment(bytes.id, options).await.unwrap();
    assert!(known.is_unchanged() && known.bytes().await.unwrap().is_empty());
    let options = DownloadOptions { range: Some((4, Some(5))), ..DownloadOptions::default() };
    let part = alice.get_attachment(bytes.id, options).await.unwrap();
    assert!(part.is_partial());
    assert_eq!(part.bytes().await.unwrap(), "tw");

    let link = alice.download_url(streamed.id).await.unwrap();
    assert!(link.expires_in > 0);
    let download = alice.download_signed(&link, DownloadOptions::default()).await.unwrap();
    assert_eq!(download.bytes().await.unwrap(), "first second");

    let other = world.agent("bob").get_attachment(bytes.id, DownloadOptions::default()).await.unwrap_err();
    assert!(other.api().is_some(), "{other}");
    alice.delete_attachment(bytes.id).await.unwrap();
    let gone = alice.get_attachment(bytes.id, DownloadOptions::default()).await.unwrap_err();
    assert!(gone.is_not_found(), "{gone}");

    let source = CreateAttachmentRequest { source_url: Some("ftp://host/x".into()), ..Default::default() };
    let refused = alice.create_attachment(source).await.unwrap_err();
    assert_eq!(refused.api().unwrap().code, "validation_error");
}
