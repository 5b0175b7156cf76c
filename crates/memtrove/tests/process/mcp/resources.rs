//! Files as resources.

use crate::mcp::support::*;

#[test]
fn files_are_resources_with_addresses_that_can_be_read() {
    let mut agent = Home::new().agent(&[]);
    agent.ok("memory_write_file", json!({"path": "notes/über uns.md", "content": "# Us"}));
    let listed = agent.request("resources/list", json!({}));
    let resource = &listed["result"]["resources"][0];
    assert_eq!(resource["uri"], "memtrove://files/notes/%C3%BCber%20uns.md");
    assert_eq!(resource["name"], "notes/über uns.md");
    let read = agent.request("resources/read", json!({"uri": resource["uri"]}));
    let contents = &read["result"]["contents"][0];
    assert_eq!((&contents["text"], &contents["mimeType"]), (&json!("# Us"), &json!("text/markdown")));
    let templates = agent.request("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "memtrove://files/{+path}");
}

#[test]
fn a_list_has_pages() {
    let mut agent = Home::new().agent(&[]);
    for number in 0..103 {
        agent.ok("memory_write_file", json!({"path": format!("f/{number:03}.md"), "content": "x"}));
    }
    let first = agent.request("resources/list", json!({}));
    assert_eq!(first["result"]["resources"].as_array().unwrap().len(), 100);
    let second = agent.request("resources/list", json!({"cursor": first["result"]["nextCursor"]}));
    assert_eq!(second["result"]["resources"].as_array().unwrap().len(), 3);
    assert!(second["result"].get("nextCursor").is_none_or(Value::is_null));
}

#[test]
fn what_is_not_there_is_an_error_of_the_protocol() {
    let mut agent = Home::new().agent(&[]);
    for uri in ["memtrove://files/nothing.md", "memtrove://other/nothing.md", "file:///etc/passwd"] {
        let error = agent.request("resources/read", json!({"uri": uri}))["error"].clone();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32002), &json!(uri)), "{error}");
    }
    let error = agent.request("resources/read", json!({"uri": "memtrove://files/../a"}))["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
}
