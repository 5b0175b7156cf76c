//! Reading a file: its headers, parts of it, what the caller has already, and what a browser must not run.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A file of somebody, and reading it.
struct File {
    owner: Client,
    path: String,
    bytes: Vec<u8>,
}

impl File {
    #[track_caller]
    fn new(filename: &str, content_type: &str, bytes: Vec<u8>) -> Self {
        let owner = SERVER.someone("alice");
        let path = at(&upload(&owner, filename, content_type, &bytes));
        Self { owner, path, bytes }
    }

    fn etag(&self) -> String {
        format!("\"{}\"", digest(&self.bytes))
    }

    #[track_caller]
    fn read(&self, headers: &[(&str, &str)]) -> Download {
        read(&SERVER, &self.owner, &self.path, headers)
    }
}

#[test]
fn a_file_comes_with_all_that_belongs_to_it() {
    let file = File::new("größe.png", "image/png", noise(200_000, 1));
    let got = file.read(&[]).expect(200);
    assert_eq!(got.bytes, file.bytes);
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", "200000"),
        ("etag", &file.etag()),
        ("cache-control", "private, max-age=86400, immutable"),
        ("vary", "Authorization, X-API-Key, X-User-ID, X-Tenant-Id"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("accept-ranges", "bytes"),
        ("content-disposition", "inline; filename=\"gr__e.png\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.png"),
        ("content-encoding", ""),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
}

#[test]
fn the_type_is_given_back_as_it_came() {
    for (content_type, how) in [
        ("text/plain; charset=iso-8859-1", "inline"),
        ("application/json", "inline"),
        ("audio/ogg; codecs=opus", "inline"),
        ("text/csv", "attachment"),
        ("application/zip", "attachment"),
        ("application/unheard-of", "attachment"),
    ] {
        let got = File::new("x", content_type, b"x".to_vec()).read(&[]).expect(200);
        assert_eq!(got.header("content-type"), content_type);
        assert_eq!(got.header("content-disposition"), format!("{how}; filename=\"x\""), "{content_type}");
    }
}

#[test]
fn what_a_browser_would_run_is_only_to_be_saved() {
    for content_type in [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "image/svg+xml",
        "text/xml",
        "application/xml",
        "application/xhtml+xml",
        "application/atom+xml",
        "text/javascript",
        "application/javascript",
        "application/x-javascript",
        "application/ecmascript",
        "multipart/x-mixed-replace",
        "message/rfc822",
        "text/css",
    ] {
        let page = b"<script>alert(document.domain)</script>".to_vec();
        let file = File::new("page.html", content_type, page);
        for part in [&[][..], &[("range", "bytes=0-10")]] {
            let got = file.read(part);
            assert!([200, 206].contains(&got.status), "{content_type}");
            assert_eq!(got.header("content-type"), "application/octet-stream", "{content_type}");
            assert_eq!(
                got.header("content-disposition"),
                "attachment; filename=\"page.html\"",
                "{content_type}"
            );
            assert_eq!(got.header("x-content-type-options"), "nosniff");
            assert_eq!(got.header("content-security-policy"), "sandbox; default-src 'none'");
        }
    }
}

#[test]
fn a_pdf_is_saved_because_no_viewer_opens_in_the_sandbox() {
    let got = File::new("a.pdf", "application/pdf", b"%PDF".to_vec()).read(&[]).expect(200);
    assert_eq!(got.header("content-type"), "application/pdf");
    assert_eq!(got.header("content-disposition"), "attachment; filename=\"a.pdf\"");
}

#[test]
fn a_name_does_not_look_like_another() {
    let got = File::new("\u{202e}gnp.exe", "image/png", b"x".to_vec()).read(&[]).expect(200);
    assert_eq!(got.header("content-disposition"), "inline; filename=\"_gnp.exe\"");
}

#[test]
fn a_name_cannot_get_out_of_its_header() {
    for name in ["a\\\"; filename=\\\"b.exe", "a;b=c.png", "a'b%22.png", "\u{202e}gnp.exe", "a, b.png"] {
        let got = File::new(name, "image/png", b"x".to_vec()).read(&[]).expect(200);
        assert_eq!(got.headers.get_all("content-disposition").iter().count(), 1);
        let sent = got.header("content-disposition");
        let rest = sent.strip_prefix("inline; filename=\"").unwrap_or_else(|| panic!("{sent}"));
        let (plain, rest) = rest.split_once('"').unwrap_or_else(|| panic!("{sent}"));
        assert!(plain.is_ascii() && !plain.contains(['\\', ';', '%', '\'']), "{sent}");
        assert!(rest.is_empty() || rest.starts_with("; filename*=UTF-8''"), "{sent}");
        assert!(!rest.contains(['"', ' ', '\\']) || rest.matches(' ').count() == 1, "{sent}");
    }
}

#[test]
fn a_caller_that_has_it_gets_no_bytes() {
    let file = File::new("a.txt", "text/plain", noise(5000, 2));
    let etag = file.etag();
    for tags in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()] {
        let got = file.read(&[("if-none-match", &tags)]).expect(304);
        assert!(got.bytes.is_empty());
        assert_eq!(got.header("etag"), etag, "{tags}");
        assert_eq!(got.header("cache-control"), "private, max-age=86400, immutable", "{tags}");
        assert_eq!(got.header("vary"), "Authorization, X-API-Key, X-User-ID, X-Tenant-Id", "{tags}");
    }
    for tags in ["\"other\"", "nonsense", ""] {
        assert_eq!(file.read(&[("if-none-match", tags)]).expect(200).bytes, file.bytes, "{tags}");
    }
    // What somebody has decides before which part of it is wanted.
    file.read(&[("if-none-match", &etag), ("range", "bytes=0-1")]).expect(304);
}

#[test]
fn one_range_comes_alone() {
    let file = File::new("a.bin", "application/octet-stream", noise(200_000, 3));
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=0-65535", 0, 65_536),
        ("bytes=65535-65536", 65_535, 65_537),
        ("bytes=65536-131071", 65_536, 131_072),
        ("bytes=199999-", 199_999, 200_000),
        ("bytes=100-999999", 100, 200_000),
        ("bytes=-5", 199_995, 200_000),
        ("bytes=-999999", 0, 200_000),
    ] {
        let got = file.read(&[("range", range)]).expect(206);
        assert!(got.bytes == file.bytes[from..to], "{range}: {} bytes", got.bytes.len());
        assert_eq!(got.header("content-range"), format!("bytes {from}-{}/200000", to - 1), "{range}");
        assert_eq!(got.header("content-length"), (to - from).to_string(), "{range}");
        assert_eq!(got.header("etag"), file.etag(), "{range}");
    }
}

#[test]
fn a_range_that_is_none_of_the_file_is_refused_with_its_size() {
    let file = File::new("a.bin", "application/octet-stream", noise(1000, 4));
    for range in ["bytes=1000-", "bytes=5000-6000", "bytes=-0"] {
        let got = file.read(&[("range", range)]).expect(416);
        assert_eq!(got.header("content-range"), "bytes */1000", "{range}");
        let body: Value = serde_json::from_slice(&got.bytes).expect("JSON");
        assert_eq!(body["code"], "range_not_satisfiable");
    }
    File::new("empty", "text/plain", Vec::new()).read(&[("range", "bytes=0-")]).expect(416);
}

#[test]
fn what_is_not_one_range_of_this_version_brings_the_whole() {
    let file = File::new("a.bin", "application/octet-stream", noise(1000, 5));
    for range in ["bytes=0-1,5-6", "bytes=9-3", "bytes=x-y", "lines=0-1", "bytes=", "0-1"] {
        let got = file.read(&[("range", range)]).expect(200);
        assert_eq!((got.bytes.len(), got.header("content-range")), (1000, ""), "{range}");
    }
    let etag = file.etag();
    file.read(&[("range", "bytes=0-1"), ("if-range", &etag)]).expect(206);
    for other in ["\"other\"", &format!("W/{etag}"), "Wed, 21 Oct 2026 07:28:00 GMT"] {
        file.read(&[("range", "bytes=0-1"), ("if-range", other)]).expect(200);
    }
}

#[test]
fn text_is_never_compressed_because_its_bytes_are_counted() {
    let file = File::new("a.txt", "text/plain", "compress me, ".repeat(10_000).into_bytes());
    let accepted = ("accept-encoding", "gzip, zstd");
    let whole = file.read(&[accepted]).expect(200);
    assert_eq!((whole.header("content-encoding"), whole.bytes.len()), ("", file.bytes.len()));
    let part = file.read(&[accepted, ("range", "bytes=1000-49999")]).expect(206);
    assert!(part.header("content-encoding").is_empty() && part.bytes == file.bytes[1000..50_000]);
}

#[test]
fn head_tells_what_get_would_bring() {
    let file = File::new("a.png", "image/png", noise(5000, 6));
    let head = |headers: &[(&str, &str)]| {
        let authorization = format!("Bearer {}", file.owner.user());
        let all = [&[("authorization", authorization.as_str())], headers].concat();
        raw("HEAD", &format!("{}{}", SERVER.url(), file.path), &all)
    };
    let got = head(&[]).expect(200);
    assert_eq!((got.header("content-length"), got.header("etag")), ("5000", file.etag().as_str()));
    assert_eq!(got.header("content-type"), "image/png");
    head(&[("if-none-match", &file.etag())]).expect(304);
    assert_eq!(head(&[("range", "bytes=0-1")]).expect(200).header("content-length"), "5000");
}

#[test]
fn many_read_one_file_at_the_same_time() {
    let file = File::new("a.bin", "application/octet-stream", noise(2_000_000, 7));
    for got in at_once(8, |n| {
        let range = format!("bytes={}-", n * 100_000);
        (n, file.read(&[("range", &range)]).expect(206).bytes)
    }) {
        assert!(got.1 == file.bytes[got.0 * 100_000..], "reader {}", got.0);
    }
}
