//! What becomes of entries: promote, decay, consolidate, clear, the end of a session.

use super::Members;
use super::fields::{identifiers, kinds, layer, layers};
use memtrove_core::Result;
use memtrove_core::memories::{
    ClearMemories, ConsolidateRequest, DecayRequest, EndSession, Precondition, Promote, Rules,
};
use serde_json::Value;

pub(in crate::rest::memories) fn promote(
    body: &Value,
    precondition: Precondition,
    rules: &Rules,
) -> Result<Promote> {
    let members = Members::body(body)?;
    let identifiers = identifiers(members)?;
    let target_layer = layer(members, "targetLayer", rules)?;
    Ok(Promote { target_layer, identifiers, precondition })
}

pub(in crate::rest::memories) fn end_session(body: &Value) -> Result<EndSession> {
    let members = Members::body(body)?;
    let identifiers = identifiers(members)?;
    let auto_delete = members.boolean("autoDelete")?;
    let seconds = |text| {
        duration_seconds(text).ok_or_else(|| {
            members.refuse("retentionPeriod", "must be a number with s, m, h or d, such as 7d")
        })
    };
    Ok(EndSession {
        identifiers,
        auto_delete,
        retention_seconds: members.text("retentionPeriod")?.map(seconds).transpose()?,
        promote_important: members.boolean("promoteImportant")?,
        promotion_threshold: members.number("promotionThreshold", 0.0..=1.0)?,
        as_of: members.instant("asOf")?,
    })
}

pub(in crate::rest::memories) fn clear(body: &Value, rules: &Rules) -> Result<ClearMemories> {
    let members = Members::body(body)?;
    let identifiers = identifiers(members)?;
    let named = members.items("kinds")?;
    let layer = layer(members, "layer", rules)?;
    Ok(ClearMemories { layer, identifiers, kinds: named.map(kinds).transpose()? })
}

pub(in crate::rest::memories) fn decay(body: &Value, rules: &Rules) -> Result<DecayRequest> {
    let members = Members::body(body)?;
    let identifiers = identifiers(members)?;
    let as_of = members.instant("asOf")?;
    let dry_run = members.flag("dryRun")?;
    let named = members.items("layers")?;
    let exempt = members.array("exemptLayers")?;
    Ok(DecayRequest {
        identifiers,
        as_of,
        dry_run,
        rate_per_day: members.number("ratePerDay", 0.0..=1.0)?,
        archive_threshold: members.number("archiveThreshold", 0.0..=1.0)?,
        decayed_below: members.number("decayedBelow", 0.0..=1.0)?,
        exempt_layers: exempt.map(|exempt| layers(exempt, rules)).transpose()?,
        layers: named.map(|named| layers(named, rules)).transpose()?,
    })
}

pub(in crate::rest::memories) fn consolidate(body: &Value, rules: &Rules) -> Result<ConsolidateRequest> {
    let members = Members::body(body)?;
    let identifiers = identifiers(members)?;
    let similarity_threshold = members.number("similarityThreshold", 0.0..=1.0)?;
    let dry_run = members.flag("dryRun")?;
    let layer = layer(members, "layer", rules)?;
    Ok(ConsolidateRequest { layer, identifiers, similarity_threshold, dry_run })
}

/// The seconds of a duration such as `90s`, `15m`, `24h` or `7d`; none for any other text, or more than time has.
fn duration_seconds(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = digits.parse::<i64>().ok()?.checked_mul(unit)?;
    seconds.checked_mul(1_000_000).map(|_| seconds)
}

#[cfg(test)]
mod tests;
