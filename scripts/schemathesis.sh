#!/usr/bin/env bash
# Fuzzes a freshly started debug server with requests generated from its own OpenAPI document. Every answer must have a
# status, a media type and a body that the document promises. The seed is fixed, so a failure comes back when it is run
# again.
#   scripts/schemathesis.sh            runs it
#   scripts/schemathesis.sh install    installs what it needs; run again, it only looks
set -euo pipefail
cd "$(dirname "$0")/.."

# Hypothesis is pinned with Schemathesis because a seed means the same requests only under the same version.
venv=$(scripts/venv.sh schemathesis schemathesis==4.32.5 hypothesis==6.170.15)
[ "${1:-}" != install ] || exit 0
# Never the server that happens to be named in the environment: this forgets users.
[ "${1:-}" = beside-server ] || exec scripts/with-server.sh scripts/schemathesis.sh beside-server
address=$MEMTROVE_URL

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Something to find: with random ids alone nearly every request would end at 404. Many, because requests delete, too.
call() {
    local path=$1
    shift
    curl --silent --show-error --fail-with-body "$address$path" --header 'Authorization: Bearer fuzz' \
        --header 'X-API-Key: fuzz-agent' --header 'Content-Type: application/json' "$@" || {
        echo "schemathesis: seeding failed at $path" >&2
        exit 1
    }
}
member() {
    python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}
conversations=() entries=() transfers=()
for number in $(seq 10 29); do
    conversation=00000000-0000-7000-8000-0000000000$number
    conversations+=("\"$conversation\"")
    body='{"channel":"history","contentType":"history","content":[{"role":"USER","text":"a message to find"}]}'
    entries+=("\"$(call "/v1/conversations/$conversation/entries" --data "$body" | member id)\"")
    body='{"channel":"memory","contentType":"message","content":[1,{"a":null}]}'
    call "/v1/conversations/$conversation/entries/sync" --data "$body" >/dev/null
    call "/v1/conversations/$conversation/memberships" --data '{"userId":"bob","accessLevel":"writer"}' >/dev/null
    body="{\"conversationId\":\"$conversation\",\"newOwnerUserId\":\"bob\"}"
    transfers+=("\"$(call /v1/ownership-transfers --data "$body" | member id)\"")
done
attachments=()
for number in $(seq 10 29); do
    form="file=something to read, number $number;filename=$number.txt;type=text/plain"
    attachments+=("\"$(curl --silent --show-error --fail-with-body "$address/v1/attachments" --header "Authorization: Bearer fuzz" --form "$form" | member id)\"")
done
files=() etags=() changes=()
scope=/v1/tenants/default/users/fuzz
for number in $(seq 10 19); do
    body='{"document":{"doc_id":"d","schema_id":"s","schema_version":"1","content":{"text":"a line\nand another"}}}'
    etag=$(call "$scope/files/notes/$number.md" --request PUT --header 'If-Match: *' --data "$body" | member etag)
    files+=("\"notes/$number.md\"") etags+=("'$etag'")
    body="{\"event\":{\"event_id\":\"e$number\",\"tenant_id\":\"default\",\"user_id\":\"fuzz\",\"digest\":\"something to find\"}}"
    call "$scope/events" --data "$body"
done
for change in $(call "$scope/audit" | python3 -c 'import json, sys; print(*(r["change_id"] for r in json.load(sys.stdin)["records"]))'); do
    changes+=("\"$change\"")
done
memories=()
for number in $(seq 10 29); do
    body="{\"content\":\"a memory to find, number $number\",\"layer\":\"user\",\"identifiers\":{\"userId\":\"fuzz\"}}"
    memories+=("\"$(call /v1/memories --data "$body" | python3 -c 'import json, sys; print(json.load(sys.stdin)["memory"]["id"])')\"")
    body="{\"layer\":\"user\",\"identifiers\":{\"userId\":\"fuzz\"},\"factType\":\"t\",\"subject\":\"s$number\",\"predicate\":\"p\",\"object\":\"o\"}"
    memories+=("\"$(call /v1/facts --data "$body" | python3 -c 'import json, sys; print(json.load(sys.stdin)["fact"]["id"])')\"")
done
values() {
    local IFS=,
    echo "values = [$*]"
}

# 501 is the documented answer of parts that are not configured here; where it is not documented,
# status_code_conformance still refuses it. A reference that leads nowhere leaves a part untested, so it fails.
cat >"$folder/schemathesis.toml" <<TOML
cache.enabled = false
warnings.fail-on = ["unresolvable_reference", "missing_deserializer", "unsupported_regex"]
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "501"]
[dictionaries.conversations]
$(values "${conversations[@]}")
[dictionaries.entries]
$(values "${entries[@]}")
[dictionaries.transfers]
$(values "${transfers[@]}")
[dictionaries.files]
$(values "${files[@]}")
[dictionaries.etags]
$(values "'*'" "${etags[@]}")
[dictionaries.changes]
$(values "${changes[@]}")
[dictionaries.memories]
$(values "${memories[@]}")
[dictionaries.attachments]
$(values "${attachments[@]}")
[dictionaries.tenants]
values = ["default"]
[dictionaries.users]
values = ["bob", "fuzz", "carol"]
[parameters]
"path.id" = { dictionary = "memories", probability = 0.8 }
"query.userId" = { dictionary = "users", probability = 0.5 }
"body.identifiers.userId" = { dictionary = "users", probability = 0.5 }
"path.conversationId" = { dictionary = "conversations", probability = 0.8 }
"path.attachmentId" = { dictionary = "attachments", probability = 0.8 }
"path.entryId" = { dictionary = "entries", probability = 0.8 }
"path.transferId" = { dictionary = "transfers", probability = 0.8 }
"path.userId" = { dictionary = "users", probability = 0.8 }
"path.tenant_id" = { dictionary = "tenants", probability = 0.8 }
"path.user_id" = { dictionary = "users", probability = 0.8 }
"path.path" = { dictionary = "files", probability = 0.8 }
"path.change_id" = { dictionary = "changes", probability = 0.8 }
"header.If-Match" = { dictionary = "etags", probability = 0.8 }
# Another tenant than that of the path would be refused before anything else is looked at.
"header.X-Tenant-Id" = { dictionary = "tenants", probability = 1.0 }
"header.X-User-ID" = { dictionary = "users", probability = 0.8 }
"body.path" = { dictionary = "files", probability = 0.8 }
"body.change_id" = { dictionary = "changes", probability = 0.8 }
"body.[*].conversationId" = { dictionary = "conversations", probability = 0.8 }
"body.[*].entryId" = { dictionary = "entries", probability = 0.8 }
"body.conversationId" = { dictionary = "conversations", probability = 0.8 }
"body.newOwnerUserId" = { dictionary = "users", probability = 0.8 }
TOML

fuzz() {
    local who=$1 examples=$2
    shift 2
    echo "==> schemathesis as $who"
    # In its own folder: it leaves files where it runs.
    (cd "$folder" && "$venv/bin/schemathesis" --config-file schemathesis.toml run "$address/openapi.json" \
        --header "Authorization: Bearer $who" --header "X-API-Key: fuzz-agent" \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
        --max-examples "$examples" --seed 20260131 --workers 1 --generation-database none \
        --request-timeout 10 --suppress-health-check all --continue-on-failure --no-color "$@") && return
    echo "schemathesis: the answers to $who differ from the document (warnings of the server below)" >&2
    exit 1
}

# The administrator first: the other pass deletes. Forgetting comes last of all, with that pass.
fuzz admin 50 --include-path-regex '^/v1/(admin/|changes$|conversations/(index|unindexed)$)|^/v1/tenants/.*(files|context|events|audit|retention)'
# A stream never ends; its tests read one.
fuzz fuzz 40 --exclude-path /openspec/v1/knowledge/stream
echo "schemathesis: both passes conform to the document"
