"""Archives of images, as `docker save` and OCI's tools write them, made without either."""
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
BUSYBOX = "/bin/busybox"  # Debian's busybox-static


def entry(name, content=None, mode=0o644, **fields):
    """One entry of a layer: a file with `content`, or with None what `fields` say (type=…,
    linkname=…)."""
    info = tarfile.TarInfo(name)
    info.mode = mode
    info.mtime = 1_700_000_000
    data = None
    if content is not None:
        data = content.encode() if isinstance(content, str) else content
        info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def folder(name, mode=0o755):
    return entry(name, type=tarfile.DIRTYPE, mode=mode)


def link(name, target):
    return entry(name, type=tarfile.SYMTYPE, linkname=target)


def hard_link(name, target):
    return entry(name, type=tarfile.LNKTYPE, linkname=target)


def tar(*entries, mode="w", form=tarfile.GNU_FORMAT):
    """A tar of entries, as bytes; `mode` "w:gz" compresses it. Only PAX_FORMAT has pax_headers."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=form) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def busybox(*more):
    """A layer with a shell and the usual commands."""
    with open(BUSYBOX, "rb") as f:
        program = f.read()
    return tar(folder("bin/"), entry("bin/busybox", program, 0o755),
               *(link(f"bin/{name}", "busybox") for name in ("sh", "cat", "ls", "id", "touch", "mount")),
               *more)


# The host's own Python, which the warm interpreter's module is made for.
PYTHON = os.path.realpath("/usr/bin/python3")
LIBRARY = f"/usr/lib/{os.path.basename(PYTHON)}"
# What programs of tests do not use, and what takes libraries of a desktop.
LEFT_OUT = re.compile(r"(^|/)(test|tests|idlelib|tkinter|lib2to3|ensurepip|turtledemo|_tkinter.*|_dbm.*|_gdbm.*|nis.*)$")


def _needed_by(*programs):
    """Shared libraries, and the loader, as the paths by which they are looked for."""
    listed = subprocess.run(["ldd", *programs], capture_output=True, check=True).stdout.decode()
    return sorted(set(re.findall(r"(/\S+) \(0x", listed)))


def _file(path, name):
    with open(path, "rb") as f:
        return entry(name, f.read(), os.stat(path).st_mode & 0o755)


def python(*more):
    """A layer with the host's Python and glibc: one whose interpreter fits the host's."""
    entries, modules = [], []
    for top, dirs, files in os.walk(LIBRARY):
        dirs[:] = [d for d in dirs if not LEFT_OUT.search(d)]
        for name in files:
            path = os.path.join(top, name)
            if LEFT_OUT.search(name) or not os.path.isfile(path):
                continue
            entries.append(_file(path, path[1:]))
            if name.endswith(".so"):
                modules.append(path)
    libraries = _needed_by(PYTHON, *modules)
    for path in libraries:
        entries.append(_file(path, "usr" + path.removeprefix("/usr")))
    return tar(*(link(d, f"usr/{d}") for d in ("lib", "lib64", "bin")), _file(PYTHON, PYTHON[1:]),
               link("usr/bin/python3", os.path.basename(PYTHON)), *entries, *more)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def config(layers, arch=ARCH, env=(), **more):
    """The configuration of an image of uncompressed layers, as bytes."""
    return json.dumps({"architecture": arch, "os": "linux", "config": {"Env": list(env)},
                       "rootfs": {"type": "layers",
                                  "diff_ids": [f"sha256:{sha256(x)}" for x in layers]}, **more}).encode()


def docker_save(*layers, packed=None, **kw):
    """What `docker save` writes. `packed`: the layers as they lie in it, if not as they are."""
    about = config(layers, **kw)
    names = [f"{i}/layer.tar" for i in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": ["test:latest"], "Layers": names}]
    return tar(*(entry(n, x) for n, x in zip(names, packed or layers)), entry("config.json", about),
               entry("manifest.json", json.dumps(manifest)))


def blobs_of(*layers, packed=None, arch=ARCH, platform=None, **kw):
    """An OCI layout as {path: bytes}."""
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def put(data, kind):
        digest = sha256(data)
        files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    manifest = {"schemaVersion": 2, "config": put(config(layers, arch=arch, **kw), "config.v1+json"),
                "layers": [put(x, "layer.v1.tar") for x in packed or layers]}
    descriptor = put(json.dumps(manifest).encode(), "manifest.v1+json")
    descriptor["platform"] = {"architecture": platform or arch, "os": "linux"}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [descriptor]}).encode()
    return files


def oci(*layers, **kw):
    return tar(*(entry(name, data) for name, data in blobs_of(*layers, **kw).items()))
