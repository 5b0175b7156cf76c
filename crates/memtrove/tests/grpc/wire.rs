//! Messages, written byte by byte.

/// A field with bytes in it: a text, a message.
pub fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 127 {
        field.push((length & 127) as u8 | 128);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend_from_slice(bytes);
    field
}

/// `google.protobuf.Value`s.
pub fn null() -> Vec<u8> {
    vec![0x08, 0x00]
}

pub fn number(number: f64) -> Vec<u8> {
    [&[0x11][..], &number.to_le_bytes()].concat()
}

pub fn string(text: &str) -> Vec<u8> {
    field(3, text.as_bytes())
}

pub fn list(items: &[Vec<u8>]) -> Vec<u8> {
    field(6, &items.iter().flat_map(|item| field(1, item)).collect::<Vec<u8>>())
}

pub fn object(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let member =
        |(name, value): &(&str, Vec<u8>)| field(1, &[field(1, name.as_bytes()), field(2, value)].concat());
    field(5, &members.iter().flat_map(member).collect::<Vec<u8>>())
}

/// `AppendEntryRequest` with these values as its content.
pub fn append(conversation: &[u8], values: &[Vec<u8>]) -> Vec<u8> {
    let content: Vec<u8> = values.iter().flat_map(|value| field(5, value)).collect();
    let entry = [field(4, b"message"), content].concat();
    [field(1, conversation), field(2, &entry)].concat()
}
