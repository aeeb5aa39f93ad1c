# The API of the packaged supervisor: its socket, and what each user may do there.

SOCKET=/run/hero/api.sock

# call USER METHOD [PARAMS]: the response, by Python's own client of HTTP.
call() {
    inside runuser -u "$1" -- python3 - "$SOCKET" "$2" "${3:-null}" <<'PYTHON'
import http.client, json, socket, sys
path, method, params = sys.argv[1:]
link = http.client.HTTPConnection("localhost")
link.sock = socket.socket(socket.AF_UNIX)
link.sock.connect(path)
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(params)})
link.request("POST", "/rpc", body, {"content-type": "application/json"})
print(link.getresponse().read().decode())
PYTHON
}

socket_is_for_the_machine() {
    eventually 10 inside test -S $SOCKET
    is "660 hero:hero" inside stat -c '%a %U:%G' $SOCKET
    # No job sees it.
    lacks "$(in_folder_of_jobs hero@python-default-1 ls -A)" api.sock
}

users_have_their_rights() {
    inside useradd -G hero api-member
    inside useradd -G hero,hero-admin api-admin
    inside useradd api-stranger
    has "$(call root system.info)" '"version"'
    has "$(call api-admin system.info)" '"version"'
    has "$(call api-member job.submit '{"job": {"id": "api-own", "script_type": "osis", "script": "1"}}')" api-own
    eventually 20 has_ended api-member api-own
    call root job.submit '{"job": {"id": "api-other", "script_type": "osis", "script": "loop {}"}}' > /dev/null
    has "$(call api-member job.stop '{"id": "api-other"}')" 32003
    has "$(call api-admin job.stop '{"id": "api-other"}')" '"result"'
    has "$(call api-member job.clear)" 32003
    # Not even a connection.
    has "$(call api-stranger system.info 2>&1 || true)" PermissionError
    for user in api-member api-admin api-stranger; do inside userdel "$user"; done
}

has_ended() { # USER ID
    has "$(call "$1" job.get "{\"id\": \"$2\"}")" finished
}

claim "the socket of the API is the machine's, and no job sees it" socket_is_for_the_machine
claim "root, both groups and others have their rights at the API" users_have_their_rights
