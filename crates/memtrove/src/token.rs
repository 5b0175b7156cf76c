//! `memtrove token`: the `Authorization` header of a user.

use crate::cli::FileArgs;
use crate::config::{Config, Span};
use crate::terminal;
use anyhow::{bail, ensure};
use clap::Args;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use memtrove_core::identity::is_user_id;
use memtrove_core::{Clock, SystemClock};
use memtrove_server::auth::config::{Mode, RolesConfig};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove token --user alice
  curl -H \"$(memtrove token --user alice)\" http://127.0.0.1:7077/v1/conversations
  memtrove token --user alice --tenant acme --role auditor --expires-in 15m

In local mode the header is just the user's name. With auth.jwt.hmac_secret it
is a signed token. With an issuer, tokens come from there and this refuses.";

/// Arguments of `memtrove token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// Who the token is for
    #[arg(long, short)]
    pub user: String,
    /// The tenant the token is bound to
    #[arg(long)]
    pub tenant: Option<String>,
    /// A role value to put into the token; may be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,
    /// How long the token is valid
    #[arg(long, default_value = "1h", value_name = "TIME")]
    pub expires_in: Span,
    /// Where the configuration comes from.
    #[command(flatten)]
    pub settings: FileArgs,
}

/// Prints the header.
pub fn run(args: &TokenArgs) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?.config;
    terminal::line(format_args!("Authorization: Bearer {}", credential(args, &config, &SystemClock)?));
    Ok(ExitCode::SUCCESS)
}

fn credential(args: &TokenArgs, config: &Config, clock: &dyn Clock) -> anyhow::Result<String> {
    ensure!(is_user_id(&args.user), "--user must be 1 to 255 characters, not blank");
    if config.auth.mode == Mode::Local {
        ensure!(
            args.tenant.is_none(),
            "in local mode a bearer header cannot carry a tenant: send X-Tenant-Id together with any X-API-Key"
        );
        ensure!(
            args.roles.is_empty(),
            "in local mode a bearer header cannot carry roles: the user 'admin' is admin, others are named in [roles]"
        );
        ensure!(!args.user.chars().any(char::is_control), "--user cannot be sent in a header");
        return Ok(args.user.clone());
    }
    let Some(secret) = &config.auth.jwt.hmac_secret else {
        match &config.auth.jwt.issuer {
            Some(issuer) => {
                bail!("tokens come from {issuer}: ask it for one, or use auth.jwt.hmac_secret in a test")
            }
            None => {
                bail!("only API keys are configured, so no token would be accepted: send X-API-Key instead")
            }
        }
    };
    for role in &args.roles {
        let RolesConfig { admin, auditor, indexer, reader, writer } = &config.roles;
        let mut granting = [admin, auditor, indexer].into_iter().chain(reader).chain(writer);
        if !granting.any(|grant| grant.claim_values.contains(role)) {
            eprintln!("warning: no role is granted for '{role}': add it to roles.<role>.claim_values");
        }
    }
    let key = EncodingKey::from_secret(secret.expose().as_bytes());
    Ok(jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims(args, config, clock)?, &key)?)
}

/// The claims this server's own configuration asks for.
fn claims(args: &TokenArgs, config: &Config, clock: &dyn Clock) -> anyhow::Result<Value> {
    let now = clock.now().as_micros() / 1_000_000;
    let jwt = &config.auth.jwt;
    let mut claims = json!({
        "sub": args.user,
        "iat": now,
        "exp": now.saturating_add_unsigned(args.expires_in.0.as_secs()),
    });
    let first = |names: &[String]| names.first().cloned();
    if let Some(name) = first(&jwt.user_id_claims) {
        put(&mut claims, &name, json!(args.user));
    }
    if let Some(tenant) = &args.tenant {
        let name = first(&config.auth.tenant_claim.0);
        let Some(name) = name else { bail!("auth.tenant_claim is empty, so no token can carry a tenant") };
        put(&mut claims, &name, json!(tenant));
    }
    if !args.roles.is_empty() {
        let Some(pointer) = first(&jwt.role_claims) else {
            bail!("auth.jwt.role_claims is empty, so no token can carry a role")
        };
        put(&mut claims, &pointer, json!(args.roles));
    }
    if !jwt.audiences.is_empty() {
        claims["aud"] = json!(jwt.audiences);
    }
    if let Some(client) = first(&jwt.allowed_clients) {
        claims["azp"] = json!(client);
    }
    Ok(claims)
}

/// Sets a claim by name, or by JSON pointer where the name starts with `/`, making the objects on the way.
fn put(claims: &mut Value, name: &str, value: Value) {
    let Some(pointer) = name.strip_prefix('/') else {
        claims[name] = value;
        return;
    };
    let mut at = claims;
    for part in pointer.split('/') {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[part];
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrove_server::auth::config::OneOrMany;
    use memtrove_server::auth::{Authenticator, Secret};

    fn args(user: &str) -> TokenArgs {
        TokenArgs {
            user: user.into(),
            tenant: None,
            roles: vec![],
            expires_in: Span::seconds(60),
            settings: FileArgs::default(),
        }
    }

    #[tokio::test]
    async fn an_issued_token_is_accepted_by_the_server_it_was_made_for() {
        let mut config = Config::default();
        config.auth.mode = Mode::Jwt;
        config.auth.tenant_claim = OneOrMany(vec!["/org/name".into()]);
        config.auth.jwt.hmac_secret = Some(Secret::new("x".repeat(32)));
        config.auth.jwt.audiences = vec!["memtrove".into()];
        config.auth.jwt.allowed_clients = vec!["cli".into()];
        config.roles.auditor.claim_values = vec!["audit".into()];
        config.auth.roles = config.roles.clone();
        let args = TokenArgs { tenant: Some("acme".into()), roles: vec!["audit".into()], ..args("alice") };
        let header = format!("Bearer {}", credential(&args, &config, &SystemClock).unwrap());

        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("authorization", header.parse().unwrap());
        let who = Authenticator::new(config.auth).unwrap().authenticate(&headers).await.unwrap();
        assert_eq!(who.tenant().as_str(), "acme");
        assert!(who.roles.auditor);
        assert_eq!(who.user.unwrap().as_str(), "alice");
    }

    #[test]
    fn local_mode_needs_no_token_and_says_what_it_cannot_do() {
        let local = Config::default();
        assert_eq!(credential(&args("alice"), &local, &SystemClock).unwrap(), "alice");
        let tenant = TokenArgs { tenant: Some("acme".into()), ..args("alice") };
        assert!(credential(&tenant, &local, &SystemClock).unwrap_err().to_string().contains("X-Tenant-Id"));
    }

    #[test]
    fn an_issuer_makes_its_own_tokens() {
        let mut config = Config::default();
        config.auth.mode = Mode::Jwt;
        config.auth.jwt.issuer = Some("https://idp.example".into());
        let refused = credential(&args("alice"), &config, &SystemClock).unwrap_err().to_string();
        assert!(refused.contains("https://idp.example"), "{refused}");
    }
}
