//! Items are found wherever they begin and end, and no bytes do harm.

use super::*;
use proptest::prelude::*;

/// An item: the member it is of, its place there, its text.
type Told = (Option<String>, usize, String);

fn all(text: &[u8], shape: Shape) -> (Vec<Told>, Option<String>) {
    let (mut items, mut found) = (Items::new(text, shape), Vec::new());
    loop {
        match items.next_item() {
            Ok(Some(Item { member, index, bytes })) => {
                let bytes =
                    bytes.map_or("too long".into(), |bytes| String::from_utf8_lossy(&bytes).into_owned());
                found.push((member, index, bytes));
            }
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error.to_string())),
        }
    }
}

fn texts(text: &str, shape: Shape) -> Vec<String> {
    let (found, error) = all(text.as_bytes(), shape);
    assert_eq!(error, None, "{text}");
    found.into_iter().map(|(_, _, text)| text).collect()
}

#[test]
fn an_array_gives_its_items() {
    let text = "\u{feff} [ {\"a\": \"]}\\\"\"} , [1,[2]],\"x\\\\\", 12 ,null]";
    assert_eq!(texts(text, Shape::Array), [r#"{"a": "]}\""}"#, "[1,[2]]", r#""x\\""#, "12", "null"]);
    assert!(texts("[]", Shape::Array).is_empty());
}

#[test]
fn members_give_the_items_of_their_arrays() {
    let text = r#"{"count": 2, "results": [{"n": 1}, {"n": 2}], "next": null, "relations": [3]}"#;
    let (found, error) = all(text.as_bytes(), Shape::Members);
    assert_eq!(error, None);
    let told: Vec<String> = found
        .iter()
        .map(|(member, index, text)| format!("{}[{index}]={text}", member.as_deref().unwrap()))
        .collect();
    assert_eq!(
        told,
        ["count[0]=2", "results[0]={\"n\": 1}", "results[1]={\"n\": 2}", "next[0]=null", "relations[0]=3"]
    );
}

#[test]
fn what_comes_after_the_end_is_read_too() {
    assert_eq!(texts("[1]\n[{\"a\":2}] {\"b\":3}", Shape::Array), ["1", "{\"a\":2}", "{\"b\":3}"]);
    assert_eq!(texts("{\"a\":1}{\"b\":2}\n[3]\n", Shape::Single), ["{\"a\":1}", "{\"b\":2}", "3"]);
    assert_eq!(texts(r#"{"results":[1]} {"results":[2]}"#, Shape::Members), ["1", "2"]);
    for (text, shape) in
        [("[1] oops", Shape::Array), ("[1]]", Shape::Array), (r#"{"a":[1]},"#, Shape::Members)]
    {
        let (found, error) = all(text.as_bytes(), shape);
        assert_eq!(found.len(), 1, "{text}");
        assert!(error.unwrap().contains("after its end"), "{text}");
    }
}

#[test]
fn what_an_answer_is_wrapped_in_is_looked_into() {
    let text = r#"{"result": {"points": [{"n": 1}], "next": null, "result": {"x": [1]}}, "status": "ok"}"#;
    let (found, error) = all(text.as_bytes(), Shape::Members);
    assert_eq!(error, None);
    let told: Vec<String> =
        found.iter().map(|(member, _, text)| format!("{}={text}", member.as_deref().unwrap())).collect();
    assert_eq!(
        told,
        ["result.points={\"n\": 1}", "result.next=null", "result.result={\"x\": [1]}", "status=\"ok\""]
    );
}

#[test]
fn lines_are_items_whatever_is_on_them() {
    assert_eq!(
        texts("{\"a\":1}\n\nnonsense\n{\"b\":2}", Shape::Lines),
        ["{\"a\":1}\n", "nonsense\n", "{\"b\":2}"]
    );
}

#[test]
fn what_is_cut_off_gives_what_came_before() {
    let (found, error) = all(br#"[{"a":1},{"b":"#, Shape::Array);
    assert_eq!(found.len(), 1);
    assert_eq!(error.as_deref(), Some("the file is cut off"));
}

#[test]
fn an_item_that_is_too_long_is_passed_over() {
    let text = [&b"[\""[..], &vec![b'x'; MAX_ITEM], b"\", 7]"].concat();
    let (found, error) = all(&text, Shape::Array);
    assert_eq!(error, None);
    let told: Vec<&str> = found.iter().map(|(_, _, text)| text.as_str()).collect();
    assert_eq!(told, ["too long", "7"]);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_go_on_for_ever(
        bytes in prop::collection::vec(prop_oneof![Just(b'['), Just(b']'), Just(b'{'), Just(b'}'), Just(b'"'), Just(b','), Just(b':'), Just(b'\\'), Just(b' '), any::<u8>()], 0..200),
    ) {
        for shape in [Shape::Array, Shape::Members, Shape::Single, Shape::Lines] {
            let (found, _) = all(&bytes, shape);
            prop_assert!(found.len() <= bytes.len() + 1);
        }
    }

    #[test]
    fn what_serde_writes_comes_back(values in prop::collection::vec("[ -~äé\\\\\"\\[\\]{}]{0,20}", 0..20)) {
        let text = serde_json::to_string(&values).unwrap();
        let back: Vec<String> = texts(&text, Shape::Array).iter().map(|one| serde_json::from_str(one).unwrap()).collect();
        prop_assert_eq!(back, values);
    }
}
