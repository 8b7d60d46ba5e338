#!/usr/bin/env bash
# Says how the request files differ between a commit and the work tree, or
# between two commits. Run it after the files were written again, to see that a
# change did what it should, for example to weights alone.
#
#   e2e/requests/changes.sh HEAD
set -euo pipefail
cd "$(dirname "$0")/../.."
from=${1:?the commit to compare with}
shift
show() { if [ $# -eq 2 ]; then git show "$2:$1" 2>/dev/null || true; else cat "$1" 2>/dev/null || true; fi; }
# Numbers of JSON and of the lines that explain, apart from those inside of words.
no_numbers() { sed -E 's/(^|[^[:alnum:]_])-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?/\1N/g'; }
words() { no_numbers | grep -oE '[[:alnum:]_.-]+' | sort; }
numbers=0 order=0 others=()
while read -r file; do
  old=$(show "$file" "$from") new=$(show "$file" "$@")
  if [ "$(no_numbers <<<"$old")" = "$(no_numbers <<<"$new")" ]; then
    numbers=$((numbers + 1))
  elif [ "$(words <<<"$old")" = "$(words <<<"$new")" ]; then
    order=$((order + 1))
  else
    others+=("$file")
  fi
done < <(git diff --name-only "$from" "$@" -- 'e2e/testdata/requests/*.txt')
echo "$((numbers + order + ${#others[@]})) files differ: $numbers in numbers only, $order in the order of the same clauses, ${#others[@]} in other ways"
[ ${#others[@]} -eq 0 ] || printf '%s\n' "${others[@]}"
