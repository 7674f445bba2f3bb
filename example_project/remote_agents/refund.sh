#!/bin/sh
# A remote agent in curl: refunds an order once a person has approved it.
#
#     export HITL_URL=http://127.0.0.1:8000/api HITL_TOKEN=hac_...
#     export PAYMENTS_URL=http://127.0.0.1:8900
#     sh refund.sh JOB ORDER AMOUNT
#
# Ends with 0: the job is over. 1: start it again, with the same words. 2: somebody has to look.
# Needs curl, and python3 to read JSON (jq before 1.7 rounds large integers). What it must not
# forget is in $STATE_DIR/JOB, one file a fact. HONOURS_KEYS=yes says that the payment system does
# nothing the second time that an Idempotency-Key comes.
set -eu

job=$1 order=$2 amount=$3
case $order$amount in *[!0-9.]*) echo "Order and amount are numbers." >&2; exit 2 ;; esac
state=${STATE_DIR:-.}/$job
mkdir -p "$state" && sync "$state/.."

knows() { [ -e "$state/$1" ]; }
note() { # NAME TEXT: the fact is there in full or not at all, outlives a crash and never changes
    draft=$(mktemp "$state/.$1.XXXXXX")
    printf '%s' "$2" > "$draft"
    sync "$draft"
    ln "$draft" "$state/$1" # fails if it is there: of two processes, one goes on
    sync "$state"
    rm "$draft"
}
over() { note over "$1"; echo "$1"; exit 0; }

send() { # CONFIG METHOD URL [KEY BODY]: sets $code and $answer; 000 stands for no answer
    told=$(printf '%s' "$1" | curl -sS -K - -m 60 -w '\n%{http_code}' -X "$2" "$3" \
        ${4:+-H "Idempotency-Key: $4" -H "Content-Type: application/json" --data-raw "$5"}) ||
        told=$(printf '\n000')
    code=$(printf '%s' "$told" | tail -n 1)
    answer=$(printf '%s' "$told" | sed '$d')
}
ask() { # METHOD PATH [KEY BODY]; others on this machine can read a command line, so no token there
    method=$1 url=$HITL_URL$2 && shift 2
    send "header = \"Authorization: Bearer $HITL_TOKEN\"" "$method" "$url" "$@"
    case $code in
        2??) ;;
        410) over "Nothing may run any more: $answer" ;;
        000 | 429 | 5??) echo "No answer yet: $code $answer" >&2; exit 1 ;;
        *) echo "Refused: $code $answer" >&2; exit 2 ;;
    esac
}
field() { # NAME: a value of $answer as JSON with every digit, and a text without its quotes
    printf '%s' "$answer" | python3 -c 'import json, sys
print(json.dumps(json.load(sys.stdin)[sys.argv[1]]).strip("\""))' "$1"
}
came() { # STATUS FIELD TEXT: kept as a text, so that it can be reported whatever it is
    outcome=$(printf '%s' "$3" | python3 -c 'import json, sys
print(json.dumps({"status": sys.argv[1], sys.argv[2]: sys.stdin.read()[:4000]}))' "$1" "$2")
    note outcome "$outcome"
}

if knows over; then cat "$state/over"; echo; exit 0; fi

# Raise. The same key with the same words is the same request, however often it is sent.
ask POST /interrupts/ "$job" '{"tool_name": "refund", "why": "money", "args_schema": {"type":
    "object", "properties": {"order_id": {"type": "integer"}, "amount": {"type": "string"}}},
    "args": {"order_id": '"$order"', "amount": "'"$amount"'"}}'
id=$(field id); status=$(field status)

# Wait.
while [ "$status" = pending ]; do ask GET "/interrupts/$id/?wait=30"; status=$(field status); done

# Consume. The key is on disk before it is used; who has lost this folder is refused.
if ! knows key; then key=$(python3 -c 'import uuid; print(uuid.uuid4())'); note key "$key"; fi
key=$(cat "$state/key")
ask POST "/interrupts/$id/consume/" "$key" '{}'
status=$(field status); decision=$(field decision); args=$(field args); reason=$(field reason)

# Act, at most once: what is noted as begun is begun again only under a key that is honoured.
if ! knows outcome; then
    case "$status $decision" in
        "decided approve" | "decided edit") ;;
        *) over "Nothing more to do: $status, $decision. $reason" ;;
    esac
    if knows acting && [ "${HONOURS_KEYS:-}" != yes ]; then
        came unknown error "The agent was stopped while it acted."
    else
        knows acting || note acting "$id"
        send '' POST "$PAYMENTS_URL/refunds" "$id" "$args"
        case $code,${HONOURS_KEYS:-} in
            2??,*) came succeeded result "$answer" ;;
            400,* | 402,* | 404,* | 422,*) came failed error "$answer" ;; # it says: not done
            *,yes) echo "Not known yet: $code $answer" >&2; exit 1 ;;
            *) came unknown error "The payment system said $code $answer" ;;
        esac
    fi
fi

# Report. Said again after a crash, it is the same report.
ask POST "/interrupts/$id/outcome/" "$key" "$(cat "$state/outcome")"
over "$(cat "$state/outcome")"
