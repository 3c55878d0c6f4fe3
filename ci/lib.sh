# Shared by the scripts of this folder: where the root is, and a heading with the time.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

heading() {
    printf '\n=== %s (after %d s)\n' "$1" "$SECONDS"
}
