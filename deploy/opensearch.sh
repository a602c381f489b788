#!/usr/bin/env bash
# A real OpenSearch with its k-NN plugin for development and tests: no Docker, no security plugin, loopback only.
# Fetches what is published on Maven Central (about 180 MB, once). Needs bash, curl, mvn (or MAVEN_REPO), python3 or unzip, and a JDK >= 21.
set -euo pipefail

VERSION=3.6.0
PORT=${OPENSEARCH_PORT:-9200}
HEAP=${OPENSEARCH_HEAP:-1g}
REPO=${MAVEN_REPO:-}
URL=http://127.0.0.1:$PORT
CLUSTER=docs-assistant
RUN_AS=docs-opensearch # the server refuses to run as root
ARTIFACTS=(
    "org.opensearch.distribution.integ-test-zip:opensearch:$VERSION"
    "org.opensearch.plugin:opensearch-knn:$VERSION.0"
    "org.opensearch.plugin:neural-search:$VERSION.0"
)

# root's home is closed to the user that the server runs as
if [ "$(id -u)" = 0 ] && [ -z "${XDG_CACHE_HOME:-}" ]; then CACHE=/var/cache; else CACHE=${XDG_CACHE_HOME:-$HOME/.cache}; fi
BASE=$CACHE/docs-assistant/opensearch-$VERSION
SERVER=$BASE/server
STATE=$BASE/port-$PORT # data, logs and pid of the server on this port
DATA=${OPENSEARCH_DATA:-$STATE/data}
PIDFILE=$STATE/pid

usage() {
    cat <<END
usage: opensearch.sh start|stop|status

start   fetch OpenSearch $VERSION when needed, start it, wait until it answers; finds one that runs already
stop    stop it; its data stays
status  say where it runs (exit code 0) or that it doesn't (1)

OPENSEARCH_PORT       port on 127.0.0.1 (now $PORT)
OPENSEARCH_HEAP       Java heap (now $HEAP)
OPENSEARCH_DATA       directory of the data (now $DATA)
OPENSEARCH_JAVA_OPTS  more options of Java
OPENSEARCH_JAVA_HOME  a JDK >= 21; else JAVA_HOME and the system's JDKs are tried
MAVEN_REPO            address of a Maven repository to download from with curl; else mvn downloads
Everything lies in $BASE (delete it to start afresh).
END
}

fail() {
    printf 'opensearch.sh: %s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# ---- what is there -----------------------------------------------------------------------------

answers() { curl --noproxy '*' -fsS -m 5 "$URL$1" 2>/dev/null; }

running() { answers / | grep -q "\"cluster_name\" *: *\"$CLUSTER\""; }

port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; }

our_pid() {
    local pid
    pid=$(cat "$PIDFILE" 2>/dev/null) || return 1
    ps -p "$pid" -o args= 2>/dev/null | grep -q org.opensearch.bootstrap && echo "$pid"
}

java_version() { # major version of the JDK in this directory, 0 when there is none
    [ -x "$1/bin/java" ] || { echo 0; return; }
    "$1/bin/java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1 | grep . || echo 0
}

find_java() {
    local home on_path=
    if have java; then on_path=$(java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'); fi
    for home in "${OPENSEARCH_JAVA_HOME:-}" "${JAVA_HOME:-}" "$on_path" /usr/lib/jvm/* /usr/java/* /opt/java/* /opt/jdk* \
        "$HOME"/.sdkman/candidates/java/* /opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home \
        /usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home /Library/Java/JavaVirtualMachines/*/Contents/Home; do
        if [ -n "$home" ] && [ "$(java_version "$home")" -ge 21 ]; then
            echo "$home"
            return
        fi
    done
    fail "no JDK >= 21 found (looked at OPENSEARCH_JAVA_HOME, JAVA_HOME, PATH, /usr/lib/jvm). Install one, as
  apt install openjdk-21-jre-headless | dnf install java-21-openjdk-headless | brew install openjdk@21
or unpack one from https://adoptium.net and set OPENSEARCH_JAVA_HOME to its directory."
}

# ---- fetch and unpack --------------------------------------------------------------------------

download() { # group:name:version file
    local group name version address sum
    IFS=: read -r group name version <<<"$1"
    if [ -z "$REPO" ]; then
        have mvn || fail "Maven (mvn) is needed to download OpenSearch: install it (apt install maven), or set MAVEN_REPO to the address of a Maven repository."
        # a repository of its own: Maven's shared one doesn't bear two programs at once, and would keep 180 MB
        mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy "-Dartifact=$1:zip" \
            "-DoutputDirectory=$BASE/zips" "-Dmaven.repo.local=$BASE/maven" >"$BASE/mvn.log" 2>&1 ||
            fail "mvn could not download $1; see $BASE/mvn.log. Check the network, or set MAVEN_REPO to another repository."
        return
    fi
    address=$REPO/${group//.//}/$name/$version/$name-$version.zip
    curl -fL --retry 3 --progress-bar -o "$2.part" "$address" ||
        fail "could not download $address. Check the network, or set MAVEN_REPO to a repository that you can reach."
    sum=$(curl -fsSL --retry 3 "$address.sha1" | cut -c 1-40) || fail "could not download $address.sha1"
    [ "$(sha1 "$2.part")" = "$sum" ] || fail "$address arrived damaged (SHA-1 differs). Start again."
    mv "$2.part" "$2"
}

sha1() { if have sha1sum; then sha1sum "$1"; else shasum -a 1 "$1"; fi | cut -c 1-40; }

unpack() { # zip directory
    mkdir -p "$2"
    if have unzip; then unzip -q -o "$1" -d "$2"; elif have python3; then python3 -m zipfile -e "$1" "$2"; else
        fail "neither unzip nor python3 is there to unpack $1. Install one of them."
    fi
}

install_server() {
    [ -e "$SERVER/.complete" ] && return
    local artifact name zip
    mkdir -p "$BASE/zips" || fail "can't write to $BASE. Set XDG_CACHE_HOME to a directory of yours."
    rm -rf "$SERVER" "$BASE/unpacked"
    for artifact in "${ARTIFACTS[@]}"; do
        IFS=: read -r _ name _ <<<"$artifact"
        zip=$BASE/zips/$name-${artifact##*:}.zip
        [ -e "$zip" ] || { echo "Fetching $artifact ..." >&2 && download "$artifact" "$zip"; }
        case $name in
        opensearch) unpack "$zip" "$BASE/unpacked" && mv "$BASE/unpacked/opensearch-$VERSION" "$SERVER" ;;
        *) unpack "$zip" "$SERVER/plugins/$name" ;;
        esac
    done
    chmod +x "$SERVER"/bin/*
    rm -rf "$BASE/unpacked" "$BASE/zips" "$BASE/maven"
    touch "$SERVER/.complete"
}

# ---- start and stop ----------------------------------------------------------------------------

as_user() { # runs a command as ourselves, or as the server's own user when we are root
    if [ "$(id -u)" != 0 ]; then
        "$@"
    elif have setpriv; then
        setpriv --reuid="$RUN_AS" --regid="$RUN_AS" --clear-groups "$@"
    elif have runuser; then
        runuser -u "$RUN_AS" -- "$@"
    else
        su -s /bin/sh "$RUN_AS" -c "$(printf '%q ' "$@")"
    fi
}

prepare_user() {
    mkdir -p "$DATA" "$STATE/logs"
    [ "$(id -u)" = 0 ] || return 0
    if ! id "$RUN_AS" >/dev/null 2>&1; then
        have useradd || fail "OpenSearch doesn't run as root. Create a user $RUN_AS, or run this as another user."
        useradd --system --user-group --no-create-home --home-dir "$BASE" --shell /usr/sbin/nologin "$RUN_AS"
    fi
    chown -R "$RUN_AS" "$SERVER" "$STATE" "$DATA"
    as_user test -r "$SERVER/bin/opensearch" ||
        fail "the user $RUN_AS can't read $BASE. Set XDG_CACHE_HOME to a directory that others may enter."
}

launch() { # the JDK's directory
    local detach=()
    if have setsid; then detach=(setsid); fi
    as_user env -u JAVA_HOME OPENSEARCH_JAVA_HOME="$1" OPENSEARCH_JAVA_OPTS="-Xms$HEAP -Xmx$HEAP ${OPENSEARCH_JAVA_OPTS:-}" HOME="$STATE" \
        ${detach[@]+"${detach[@]}"} nohup "$SERVER/bin/opensearch" -p "$PIDFILE" \
        -Ecluster.name=$CLUSTER -Enode.name=local -Ediscovery.type=single-node \
        -Enetwork.host=127.0.0.1 -Ehttp.port="$PORT" -Epath.data="$DATA" -Epath.logs="$STATE/logs" \
        -Eaction.auto_create_index=false -Ecluster.routing.allocation.disk.threshold_enabled=false \
        -Eindices.breaker.total.use_real_memory=false \
        >"$STATE/logs/console.log" 2>&1 </dev/null &
}

start() {
    have curl || fail "curl is not there. Install it."
    if running; then
        echo "$URL"
        return
    fi
    port_taken && fail "port $PORT is taken by something else. Free it, or choose another: OPENSEARCH_PORT=9201 $0 start"
    local java launched
    java=$(find_java)
    install_server
    prepare_user
    echo "Starting OpenSearch $VERSION with $java ..." >&2
    launch "$java"
    launched=$!
    for _ in $(seq 180); do
        if answers '/_cluster/health?wait_for_status=yellow&timeout=3s' >/dev/null; then
            echo "$URL"
            return
        fi
        kill -0 "$launched" 2>/dev/null || our_pid >/dev/null || break # it gave up
        sleep 1
    done
    grep -v '^[[:space:]]*at ' "$STATE/logs/console.log" | tail -n 20 >&2
    fail "OpenSearch did not start (its last lines are above, all of them in $STATE/logs)."
}

stop() {
    local pid
    if ! pid=$(our_pid); then
        port_taken && fail "nothing of ours is known on port $PORT, yet something listens there."
        echo "not running"
        return
    fi
    kill "$pid"
    for _ in $(seq 60); do
        if ! our_pid >/dev/null; then
            rm -f "$PIDFILE"
            echo "stopped"
            return
        fi
        sleep 0.5
    done
    fail "process $pid did not stop in 30 s (kill -9 $pid ends it)."
}

status() {
    if running; then echo "$URL"; else echo "not running" && return 1; fi
}

case ${1:-} in
start | stop | status) "$1" ;;
-h | --help | help) usage ;;
*) usage >&2 && exit 2 ;;
esac
