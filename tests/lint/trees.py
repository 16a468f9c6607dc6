"""What the lints of a whole tree have in common: check(ROOT) lists problems,
"PATH: TEXT" each, and the self-test has it check a tree that is made."""
import os
import sys
import tempfile


def check_made(check, bad, good, others, said):
    """Texts by path: of `bad` each must be caught, of `good` none; `others` are
    there, too, and of the whole `said` must be said."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**bad, **good, **others}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)),
                        exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        found = check(root)
    caught = {line.split(":")[0] for line in found}
    missed = sorted(set(bad) - caught) + [
        text for text in said if not any(text in line for line in found)]
    wrong = sorted(set(good) & caught)
    for text in missed:
        print("not caught: %s" % text)
    for path in wrong:
        print("caught wrongly: %s" % path)
    return 1 if missed or wrong else 0


def main(check, bad, good, others=None, said=()):
    if sys.argv[1] == "--self-test":
        sys.exit(check_made(check, bad, good, others or {}, said))
    problems = check(sys.argv[1])
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
