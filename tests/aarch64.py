"""A whole aarch64 system, for the row of that name of matrix.py.

cpprof is built by the cross compiler, with Debian's arm64 libraries. These, the
tests and the hosts of the guest suite become the first file system of Debian's
arm64 kernel, which runs under QEMU: so signals, timers, perf events, threads
and processes are the kernel's own, and the processor checks signed return
addresses. Nothing of this machine is changed: apt keeps the packages of the
other architecture in the cache.
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess

PACKAGES = """bash busybox-static coreutils libc-bin libc6-dbg mount procps
    python3 lua5.4 liblua5.4-0-dbg liblua5.4-dev libc6-dev libdw-dev libelf-dev
    libdeflate-dev zlib1g-dev libiberty-dev libre2-dev libjansson-dev
    libcmocka-dev libcurl4-openssl-dev libedit-dev libmicrohttpd-dev
    linux-image-arm64""".split()
NEEDS = ("aarch64-linux-gnu-g++", "qemu-system-aarch64", "qemu-aarch64",
         "cpio", "apt-get", "dpkg-deb")
CROSS = """[binaries]
c = ['aarch64-linux-gnu-gcc', '--sysroot={0}']
cpp = ['aarch64-linux-gnu-g++', '--sysroot={0}']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = 'qemu-aarch64'
[properties]
sys_root = '{0}'
pkg_config_libdir = '{0}/usr/lib/aarch64-linux-gnu/pkgconfig:{0}/usr/lib/pkgconfig:{0}/usr/share/pkgconfig'
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""
INIT = """#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /usr/local/bin; mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm; mount -t tmpfs tmp /tmp
busybox --install -s /usr/local/bin; ifconfig lo 127.0.0.1 up; ldconfig
cd /work; bash /run.sh </dev/null >/dev/ttyAMA0 2>&1
sync; echo o > /proc/sysrq-trigger; sleep 60
"""
RECORD = """build/cpprof record -o /tmp/demo.pb.gz -- lua5.4 examples/demo.lua
echo "status $?"; echo COLLAPSED
build/cpprof -collapsed /tmp/demo.pb.gz
"""
TEST = """env %s timeout 300 %s > /tmp/said 2>&1; status=$?
if [ $status = 0 ]; then echo "RESULT %s ok"
elif [ $status = 77 ]; then echo "RESULT %s skipped"
else echo "RESULT %s bad"; grep -v '^ok' /tmp/said | tail -15; fi
"""
GUEST = """touch build/guest/*; export CC=true
for mode in off "cpu timer" heap locks wall; do
    python3 tests/guest/run.py build "$mode" > /tmp/said 2>&1
    echo "GUEST $mode: $(grep -c '^ok' /tmp/said) ok, $(grep -c '^not ok' /tmp/said) not"
    grep -v '^ok' /tmp/said
done
"""
# Seconds; an emulated processor takes ten times as long.
BOOT_MAX = 3 * 3600


def fetch(run, cache, root):
    """Debian's arm64 packages, unpacked; False: they are not to be had."""
    apt = os.path.join(cache, "apt")
    for name in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(apt, name), exist_ok=True)
    with open(os.path.join(apt, "status"), "w", encoding="utf-8"):
        pass
    how = ["apt-get", "-y", "-qq", "--no-install-recommends"]
    for name, value in (("APT::Architecture", "arm64"),
                        ("APT::Architectures", "arm64"),
                        ("Dir::State::lists", apt + "/lists"),
                        ("Dir::State::status", apt + "/status"),
                        ("Dir::Cache", apt + "/cache"),
                        ("APT::Sandbox::User", "root")):
        how += ["-o", "%s=%s" % (name, value)]
    if run(how + ["update"])[0] or \
            run(how + ["--download-only", "install"] + PACKAGES)[0]:
        return False
    for name in ("bin", "lib", "sbin"):
        os.makedirs(os.path.join(root, "usr", name), exist_ok=True)
        os.symlink("usr/" + name, os.path.join(root, name))
    for package in sorted(glob.glob(apt + "/cache/archives/*.deb")):
        if run(["sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | '
                'tar -x --keep-directory-symlink -C "$1"', package, root])[0]:
            return False
    return True


def build(run, top, root, folder):
    cross = folder + ".ini"
    with open(cross, "w", encoding="utf-8") as out:
        out.write(CROSS.format(root))
    if not os.path.exists(os.path.join(folder, "build.ninja")) and \
            run(["meson", "setup", "--cross-file", cross, folder, top],
                QEMU_LD_PREFIX=root)[0]:
        return False
    return not run(["ninja", "-C", folder], QEMU_LD_PREFIX=root)[0] and \
        not run(["python3", os.path.join(top, "tests/guest/run.py"), folder,
                 "-build"], CC="aarch64-linux-gnu-gcc")[0]


def tests_of(folder, top, suites):
    """Lines for a shell: those that are a program of the build."""
    listed = subprocess.run(["meson", "introspect", "--tests", folder],
                            capture_output=True, text=True, check=True)
    lines = []
    for test in json.loads(listed.stdout):
        suite = test["suite"][0].split(":")[-1]
        command = [word for word in test["cmd"]
                   if not word.endswith("qemu-aarch64")]
        if suite not in suites or not command[0].startswith(folder):
            continue
        words = [word.replace(folder, "/work/build").replace(top, "/work")
                 for word in command + ["%s=%s" % pair for pair in
                                        sorted(test["env"].items())]]
        n = len(command)
        lines.append(TEST % (" ".join(map(shlex.quote, words[n:])),
                             " ".join(map(shlex.quote, words[:n])),
                             suite, suite, suite))
        lines[-1] = "# %s\n" % test["name"] + lines[-1]
    return lines


def make_image(run, top, root, folder, script):
    """The first file system; returns its path, or None."""
    image = root + ".image"
    shutil.rmtree(image, ignore_errors=True)
    leave = shutil.ignore_patterns("include", "doc", "man", "locale", "modules",
                                   "*.a", "*.p", ".git")
    shutil.copytree(root, image, symlinks=True, ignore=leave)
    for name in ("tests", "src", "examples", "bindings"):
        shutil.copytree(os.path.join(top, name), image + "/work/" + name,
                        symlinks=True, ignore=leave)
    shutil.copytree(folder, image + "/work/build", symlinks=True, ignore=leave)
    for name, text in (("init", INIT), ("run.sh", script)):
        with open(os.path.join(image, name), "w", encoding="utf-8") as out:
            out.write(text)
    os.chmod(os.path.join(image, "init"), 0o755)
    for name in ("dev", "proc", "sys", "tmp", "root", "run"):
        os.makedirs(os.path.join(image, name), exist_ok=True)
    failed = run(["sh", "-c", 'cd "$0" && find . | cpio -o -H newc --quiet | '
                  'gzip -1 > "$0.gz"', image])[0]
    return None if failed else image + ".gz"


def row(run, cache, top, live, share_complete):
    """The cells of the table; run(command, **environment) as matrix.run()."""
    missing = [name for name in NEEDS if not shutil.which(name)]
    root, folder = (os.path.join(cache, name) for name in
                    ("aarch64.root", "build_aarch64"))
    if missing:
        return ["not tried: no " + ", ".join(missing)]
    if not os.path.isdir(root):
        shutil.rmtree(root + ".new", ignore_errors=True)
        if not fetch(run, os.path.join(cache, "aarch64"), root + ".new"):
            return ["not tried: no packages of arm64"]
        os.rename(root + ".new", root)
    if not build(run, top, root, folder):
        return ["no"]
    suites = ["unit"] + ["live"] * live
    image = make_image(run, top, root, folder,
                       RECORD + "".join(tests_of(folder, top, suites)) +
                       GUEST * live)
    if not image:
        return ["yes"]
    said = run(["timeout", str(BOOT_MAX), "qemu-system-aarch64", "-M", "virt",
                "-cpu", "max,pauth-impdef=on", "-smp", "2", "-m", "4096",
                "-kernel", sorted(glob.glob(root + "/boot/vmlinuz-*"))[-1],
                "-initrd", image, "-append",
                "console=ttyAMA0 rdinit=/init panic=-1 quiet", "-display",
                "none", "-serial", "stdio", "-monitor", "none", "-no-reboot",
                "-nic", "none"])[1].replace("\r", "")
    cells = []
    for suite in ("unit", "live"):
        n = [len(re.findall("^RESULT %s %s$" % (suite, how), said, re.M))
             for how in ("ok", "bad")]
        cells.append("%d of %d" % (n[0], sum(n)) if sum(n) else "-")
    recorded = "yes" if "status 0" in said else "no"
    return ["yes"] + cells + [recorded, share_complete(
        said.partition("COLLAPSED\n")[2].partition("RESULT")[0])]
