# source_files GLOB...: our files that match, separated by NUL; sourced. In a
# git checkout these are files that git tracks or would track, otherwise all
# files outside of builds.
source_files() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    local file
    git ls-files -z --cached --others --exclude-standard -- "$@" |
      while IFS= read -r -d '' file; do
        # Deleted but not yet committed.
        [ ! -f "$file" ] || printf '%s\0' "$file"
      done
  else
    local glob names=()
    for glob in "$@"; do
      names+=(-o -name "$glob")
    done
    find . -name build -prune -o \
      \( -false "${names[@]}" \) -type f -print0
  fi
}
