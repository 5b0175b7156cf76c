use super::*;
use crate::rest::testing::code;
use http::HeaderValue;

fn params(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn subject(pairs: &[(&str, &str)]) -> Result<Subject> {
    Subject::read(Params::new(&params(pairs))?)
}

fn format(word: &str) -> Result<()> {
    check_format(Params::new(&params(&[("format", word)]))?)
}

#[test]
fn a_stream_is_of_one_type_and_in_one_format() {
    assert_eq!(subject(&[]).unwrap(), Subject::Updates);
    assert_eq!(subject(&[("type", "Notifications")]).unwrap(), Subject::Notifications);
    assert_eq!(code(subject(&[("type", "everything")])), "INVALID_REQUEST type");
    assert_eq!(code(subject(&[("type", "updates"), ("type", "query")])), "INVALID_REQUEST type");
    assert!(format("SSE").is_ok());
    assert_eq!(code(format("websocket")), "NOT_IMPLEMENTED");
    assert_eq!(code(format("morse")), "INVALID_REQUEST format");
}

#[test]
fn parameters_are_a_layer_object() {
    let given =
        params(&[("types", "user, semantic,"), ("project_id", "p"), ("tags", "a,b"), ("type", "updates")]);
    let layer = layer(Params::new(&given).unwrap()).unwrap();
    assert_eq!(Value::Object(layer), json!({"project_id": "p", "types": ["user", "semantic"]}));
    assert_eq!(list(Params::new(&given).unwrap(), "tags").unwrap(), ["a", "b"]);
}

#[test]
fn a_stream_is_resumed_after_a_number_that_was_sent() {
    let read = |text: &'static str| {
        last_event_id(&HeaderMap::from_iter([(
            http::HeaderName::from_static("last-event-id"),
            HeaderValue::from_static(text),
        )]))
    };
    assert_eq!(last_event_id(&HeaderMap::new()).unwrap(), None);
    assert_eq!(read("").unwrap(), None);
    assert_eq!(read("42").unwrap(), Some(42));
    assert_eq!(code(read("-1")), "INVALID_REQUEST Last-Event-ID");
    assert_eq!(code(read("yesterday")), "INVALID_REQUEST Last-Event-ID");
}
