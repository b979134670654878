"""What an interpreter tells of its program beside the output: the exception that ended it, the
value of its last expression, the figures that are open at its end.

It goes as records into memory that is shared with whoever answers the request; src/wire/report.h
has the format. The program can reach all of this and write there what it likes. It then lies
about nothing but itself.

A warm interpreter (runtimes/python/agent.py) has this ready, a cold one (src/box/cold/library.c) makes it when
it is needed. Nothing is imported that a program might have a file named like, or have replaced.
"""
import sys

ERROR, RESULT, FIGURE, DATA = 1, 2, 3, 4 # as in src/wire/report.h
FRAMES_MAX = 64        # of a traceback: its first and its last half
RELATED_MAX = 16       # causes, contexts, members of a group
TEXT_MAX = 1000        # characters of a source line, a name, a path
MESSAGE_MAX = 16384    # characters of an exception's text
REPR_MAX = 65536       # characters of a value's repr()
ITEM_BYTES_MAX = 1 << 20 # of one representation of a value
JSON_BYTES_MAX = 1 << 18 # of all that are JSON, and of what is told of an error
VALUE_BYTES_MAX = 3 << 20 # of all of them: figures want room as well
DEPTH_MAX = 32         # of a value that is told as JSON
MIME_MAX = 16          # representations
FIGURES_MAX = 32
SPARE_BYTES = 1 << 16    # room for saying that there was no room, 65 times
SPARE_TEXT_MAX = 64    # characters of a text, of six bytes each at most, in that


class Area:
    """The shared memory, and the program that it is for."""
    bytes = None # writable, as long as the memory
    path = ""    # of the program
    used = 0


def begin(area, path):
    Area.bytes, Area.path, Area.used = area, path, 0


def put(*records, spare=0):
    """Write (kind, bytes) of each, all or none, and leave `spare` bytes of room. The first magic
    is written last: what a kill cuts short was never there."""
    blob = b"".join(b"GBR1" + kind.to_bytes(4, sys.byteorder) + len(data).to_bytes(8, sys.byteorder) + data
                    for kind, data in records)
    end = Area.used + len(blob)
    if end > len(Area.bytes) - spare:
        return False
    Area.bytes[Area.used + 4:end] = blob[4:]
    Area.bytes[Area.used:Area.used + 4] = blob[:4]
    Area.used = end
    return True


# ---- JSON ----

ESCAPES = {**{i: f"\\u{i:04x}" for i in range(32)}, ord('"'): '\\"', ord("\\"): "\\\\"}


def plain(text):
    """Without halves of surrogate pairs, which no JSON text can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def pieces(value, depth=0):
    """The JSON text of a value in pieces, if JSON can say exactly that. (Tuples become arrays.)"""
    if value is None or isinstance(value, bool):
        yield "null" if value is None else "true" if value else "false"
    elif isinstance(value, str):
        str.encode(value) # ValueError for half a surrogate pair
        yield '"' + str.translate(value, ESCAPES) + '"'
    elif isinstance(value, int) and -1 << 63 <= value < 1 << 63:
        yield int.__repr__(value)
    elif isinstance(value, float) and float.__sub__(value, value) == 0.0:
        yield float.__repr__(value)
    elif depth == DEPTH_MAX:
        raise ValueError("too deep")
    elif isinstance(value, (list, tuple)):
        yield "["
        for i, item in enumerate(list(value)):
            yield "," if i else ""
            yield from pieces(item, depth + 1)
        yield "]"
    elif isinstance(value, dict):
        yield "{"
        for i, (key, item) in enumerate(dict.items(value)):
            if not isinstance(key, str):
                raise ValueError("a key that is no text")
            yield "," if i else ""
            yield from pieces(key)
            yield ":"
            yield from pieces(item, depth + 1)
        yield "}"
    else:
        raise ValueError("no JSON")


def to_json(value, most=sys.maxsize):
    """ValueError: JSON cannot say it, or not in so many bytes."""
    parts, size = [], 0
    for part in pieces(value):
        part = part.encode()
        size += len(part)
        if size > most:
            raise ValueError("too long")
        parts.append(part)
    return b"".join(parts)


# ---- The exception that ended the program ----

def clip(text, most):
    return plain(text if len(text) <= most else text[:most - 1] + "…")


def name_of(cls):
    module, name = cls.__module__, cls.__qualname__
    return clip(name if module in ("builtins", "__main__") else f"{module}.{name}", TEXT_MAX)


def text_of(value):
    try:
        if isinstance(value, SyntaxError):
            text = str(value.msg)
        else:
            text = str(value)
        notes = getattr(value, "__notes__", ())
        if isinstance(notes, (list, tuple)):
            text = "\n".join([text, *map(str, notes)])
    except BaseException:
        return "<exception str() failed>" # as the interpreter says it
    return clip(text, MESSAGE_MAX)


def source_line(path, number, cache):
    """Without its indentation, as a traceback shows it; None: there is none to be had."""
    if path not in cache:
        try:
            with open(path, "rb") as file:
                cache[path] = file.read(1 << 22).decode("utf-8", "replace").splitlines()
        except Exception:
            cache[path] = []
    lines = cache[path]
    return clip(lines[number - 1].strip(), TEXT_MAX) if number and 0 < number <= len(lines) else None


def frame(path, number, function, cache):
    return {"file": clip(path, TEXT_MAX), "line": number, "function": function,
            "text": source_line(path, number, cache)}


def whole(number):
    return number if isinstance(number, int) and 0 < number < 1 << 31 else None


def describe(value, traceback, cache):
    """One exception: what it is and where, and the line of the program that it came from."""
    places, line = [], None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        number = whole(traceback.tb_lineno)
        places.append((code.co_filename, number, code.co_name))
        if code.co_filename == Area.path:
            line = number
        traceback = traceback.tb_next
    if isinstance(value, SyntaxError) and isinstance(value.filename, str):
        number = whole(value.lineno)
        places.append((value.filename, number, None))
        if value.filename == Area.path:
            line = number
    half = FRAMES_MAX // 2
    omitted = max(0, len(places) - FRAMES_MAX)
    if omitted:
        places[half:-half] = []
    return {"type": name_of(type(value)), "message": text_of(value), "line": line,
            "traceback": [frame(path, number, name and clip(name, TEXT_MAX), cache)
                          for path, number, name in places],
            "frames_omitted": omitted}


def chain_of(value):
    """(relation, exception) of what led to it, latest first."""
    seen = {id(value)}
    while True:
        relation, value = (("cause", value.__cause__) if value.__cause__ is not None else
                           ("context", None if value.__suppress_context__ else value.__context__))
        if value is None or id(value) in seen:
            return
        seen.add(id(value))
        yield relation, value


def members_of(group):
    """The exceptions of a group and of the groups in it."""
    waiting = [group]
    while waiting:
        value = waiting.pop()
        if isinstance(value, BaseExceptionGroup):
            waiting += reversed(value.exceptions)
        else:
            yield "member", value


def error(value, traceback):
    """The program ends by this exception, which nobody has caught."""
    try:
        cache = {}
        told = describe(value, traceback, cache)
        related = list(chain_of(value))
        if isinstance(value, BaseExceptionGroup):
            related += members_of(value)
        told["related"] = [{"relation": relation, **describe(e, e.__traceback__, cache)}
                           for relation, e in related[:RELATED_MAX]]
        told["related_omitted"] = max(0, len(related) - RELATED_MAX)
        put((ERROR, shortened(told)))
    except BaseException: # it is on stderr, in any case
        pass


def shortened(told):
    """As JSON; where that is too long, with fewer frames, and then without what led to it."""
    for shorten in (lambda: None, lambda: cut_frames(told, 4), lambda: told.update(
            related=[], related_omitted=told["related_omitted"] + len(told["related"]))):
        shorten()
        try:
            return to_json(told, JSON_BYTES_MAX)
        except ValueError:
            pass
    raise ValueError


def cut_frames(told, most):
    for e in told, *told["related"]:
        if len(e["traceback"]) > most:
            e["frames_omitted"] += len(e["traceback"]) - most
            e["traceback"][most // 2:-(most // 2)] = []


# ---- The value of the last expression ----

def split(source, path):
    """(code of all but the last statement, code of the last one's value); None where the last
    statement is no expression, or this is no program."""
    import _ast
    try:
        tree = compile(source, path, "exec", _ast.PyCF_ONLY_AST, True)
        if not tree.body or not isinstance(tree.body[-1], _ast.Expr):
            return None
        last = tree.body[-1].value
        if len(tree.body) == 1 and isinstance(last, _ast.Constant) and isinstance(last.value, str):
            body = tree # a docstring, which is a value as well
        else:
            body = _ast.Module(tree.body[:-1], [])
        body = compile(body, path, "exec", 0, True)
        return body, compile(_ast.Expression(last), path, "eval", body.co_flags & FUTURE, True)
    except Exception:
        return None


FUTURE = 0x1fe0000 # CO_FUTURE_* of Include/cpython/code.h: what `from __future__` turns on

METHODS = (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown"), ("_repr_latex_", "text/latex"),
           ("_repr_svg_", "image/svg+xml"), ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"),
           ("_repr_json_", "application/json"))


def saying(e):
    return clip(f"{name_of(type(e))}: {text_of(e)}", TEXT_MAX)


class Bundle:
    """Representations of one value, as far as there is room for them."""

    def __init__(self):
        self.items, self.omitted, self.left, self.json_left = {}, [], VALUE_BYTES_MAX, JSON_BYTES_MAX

    def omit(self, what, why):
        if len(self.omitted) < MIME_MAX:
            self.omitted.append(clip(f"{what}: {why}", TEXT_MAX))

    def add(self, mime, value):
        try:
            if isinstance(value, (bytes, bytearray, memoryview)):
                encoding, data = "base64", bytes(value)
            elif isinstance(value, str) and not mime.endswith("json"):
                encoding, data = "text", plain(value).encode()
            else:
                encoding, data = "json", to_json(value, self.json_left)
        except ValueError as e:
            return self.omit(mime, e)
        size = len(data)
        if size > ITEM_BYTES_MAX or size > self.left or len(self.items) == MIME_MAX:
            return self.omit(mime, f"{size} bytes are more than there is room for")
        self.left -= size
        self.json_left -= size if encoding == "json" else 0
        self.items[mime] = encoding, data

    def ask(self, value, name):
        """What the value's own method of that name returns; None without one."""
        method = getattr(type(value), name, None)
        if method is None:
            return None
        try:
            return method(value)
        except BaseException as e:
            self.omit(name, saying(e))

    def fill(self, value):
        try:
            self.add("application/json", json_of(value))
        except ValueError:
            pass
        for name, mime in METHODS:
            shown = self.ask(value, name)
            if shown is not None:
                self.add(mime, shown)
        more = self.ask(value, "_repr_mimebundle_")
        if isinstance(more, tuple) and more: # data and metadata
            more = more[0]
        if isinstance(more, dict):
            for mime, shown in more.items():
                if isinstance(mime, str) and mime.isascii() and mime.isprintable() and 0 < len(mime) <= 128:
                    if shown is not None:
                        self.add(mime, shown)
                else:
                    self.omit("_repr_mimebundle_", "a key that is no type")


def json_of(value):
    """The value, if it is one that JSON was made for."""
    if not isinstance(value, (str, int, float, list, tuple, dict)):
        raise ValueError
    to_json(value, JSON_BYTES_MAX)
    return value


def result(value):
    """The last statement was an expression, and this is its value."""
    if value is None:
        return
    try:
        bundle, shown = Bundle(), None
        try:
            shown = repr(value)
        except BaseException as e:
            bundle.omit("repr", saying(e))
        else:
            bundle.add("text/plain", clip(shown, REPR_MAX))
        bundle.fill(value)
        told = {"repr_length": 0 if shown is None else len(shown), "omitted": bundle.omitted,
                "mime": [[mime, encoding] for mime, (encoding, _) in bundle.items.items()]}
        put((RESULT, to_json(told)), *((DATA, data) for _, data in bundle.items.values()))
    except BaseException:
        pass


# ---- Figures ----

def figures(formats):
    """What matplotlib still has open, in each of these formats, of which it knows more."""
    try:
        managers = sys.modules["matplotlib._pylab_helpers"].Gcf.get_all_fig_managers()
        for manager in managers[:FIGURES_MAX]:
            for kind in formats:
                draw(manager, kind)
        left = managers[FIGURES_MAX:]
        if left:
            told = about(left[0], formats[0])
            told["omitted"] = f"at most {FIGURES_MAX} figures are taken; there are {len(left)} more"
            put_figure(told, b"")
    except BaseException:
        pass


MIMES = {"png": "image/png", "svg": "image/svg+xml"}


def about(manager, kind):
    told = {"number": 0, "label": "", "mime_type": MIMES[kind], "omitted": None}
    try:
        told["number"] = whole(manager.num) or 0
        told["label"] = clip(str(manager.canvas.figure.get_label()), TEXT_MAX)
    except BaseException as e:
        told["omitted"] = saying(e)
    return told


def draw(manager, kind):
    import _io
    told, data = about(manager, kind), b""
    try:
        if told["omitted"] is None:
            file = _io.BytesIO()
            manager.canvas.figure.savefig(file, format=kind)
            data = file.getvalue()
    except BaseException as e:
        told["omitted"] = saying(e)
    put_figure(told, data)


def put_figure(told, data):
    if put((FIGURE, to_json(told)), (DATA, data), spare=SPARE_BYTES):
        return
    # In so few bytes that there is room for all of them.
    told["label"] = clip(told["label"], SPARE_TEXT_MAX)
    told["omitted"] = clip(told["omitted"] or f"its {len(data)} bytes are more than there is room for", SPARE_TEXT_MAX)
    put((FIGURE, to_json(told)), (DATA, b""))
