"""Values of TensorBoard's plugins, as bytes of the message Summary.Value: what SummaryWriter adds beside
numbers, histograms, pictures and texts. numpy is imported where it is needed: many scripts need none."""

import struct
import zlib

_FLOAT, _INT32, _UINT8, _STRING = 1, 3, 4, 7  # TensorFlow's DataType
_TYPES = {"float32": _FLOAT, "int32": _INT32, "uint8": _UINT8}
_TENSOR_DATA = 2  # DataClass


# ---- Messages ---------------------------------------------------------------------------------------------


def _varint(number):
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _integer(field, number):
    return _varint(field << 3) + _varint(number)


def _shape(sizes):
    return b"".join(_block(2, _integer(1, size)) for size in sizes)


def _tensor(array):
    kind = _integer(1, _TYPES[array.dtype.name])
    return kind + _block(2, _shape(array.shape)) + _block(4, array.tobytes())


def _text_tensor(content):
    return _integer(1, _STRING) + _block(2, b"") + _block(8, content)


def _value(tag, plugin, tensor, content=b""):
    plugin_data = _block(1, plugin) + _block(2, content)
    metadata = _block(1, plugin_data) + _integer(4, _TENSOR_DATA)
    return _block(1, tag) + _block(8, tensor) + _block(9, metadata)


# ---- Histograms -------------------------------------------------------------------------------------------


def histogram(tag, whole, limits, counts):
    """Of (least, greatest, count, sum, sum of squares), and of the bytes of two float64 arrays."""
    numbers = b"".join(
        _varint(field << 3 | 1) + struct.pack("<d", number) for field, number in enumerate(whole, 1)
    )
    return _block(1, tag) + _block(5, numbers + _block(6, limits) + _block(7, counts))


# ---- Curves of precision and recall -----------------------------------------------------------------------


def pr_counts(labels, predictions, thresholds, weights):
    """(6, thresholds): true and false positives, true and false negatives, precision and recall of each."""
    import numpy

    at = numpy.floor(predictions * (thresholds - 1)).astype(numpy.int64)
    # A row counts for its own threshold and for all below it.
    positives, negatives = (
        numpy.bincount(at, weights=share * weights, minlength=thresholds)[::-1].cumsum()[::-1]
        for share in (labels, 1 - labels)
    )
    true_negatives, false_negatives = negatives[0] - negatives, positives[0] - positives
    precision = positives / numpy.maximum(positives + negatives, 1e-7)
    recall = positives / numpy.maximum(positives + false_negatives, 1e-7)
    return numpy.stack([positives, negatives, true_negatives, false_negatives, precision, recall])


def pr_curve(tag, counts):
    """Of what pr_counts() gives."""
    content = _integer(2, counts.shape[1])
    return _value(tag, "pr_curves", _tensor(counts.astype("float32")), content)


# ---- Meshes -----------------------------------------------------------------------------------------------

_PARTS = (("VERTEX", 1, "float32"), ("FACE", 2, "int32"), ("COLOR", 3, "uint8"))  # name, ContentType, dtype


def mesh(tag, vertices, faces, colors, config):
    """(tag, value) of each part of (batch, number, 3) that is not None; `config` is JSON."""
    given = [
        (part, array)
        for part, array in zip(_PARTS, (vertices, faces, colors), strict=True)
        if array is not None
    ]
    components = sum(1 << number for (_, number, _), _ in given)
    for (name, number, dtype), array in given:
        content = _block(2, tag) + _integer(3, number) + _block(5, config)
        content += b"".join(_integer(6, size) for size in array.shape) + _integer(7, components)
        yield f"{tag}_{name}", _value(f"{tag}_{name}", "mesh", _tensor(array.astype(dtype)), content)


# ---- Which scalars are drawn together ---------------------------------------------------------------------

LAYOUT_TAG = "custom_scalars__config__"


def layout(categories):
    """Of {category: {chart: [kind, tags]}}; kind is Multiline, or Margin with (value, lower, upper)."""
    made = b""
    for category, charts in categories.items():
        content = _block(1, category)
        for title, (kind, tags) in charts.items():
            content += _block(2, _block(1, title) + _chart(title, kind, list(tags)))
        made += _block(2, content)
    return _value(LAYOUT_TAG, "custom_scalars", _text_tensor(made))


def _chart(title, kind, tags):
    if kind == "Multiline":
        return _block(2, b"".join(_block(1, tag) for tag in tags))
    if kind == "Margin" and len(tags) == 3:
        return _block(3, _block(1, b"".join(_block(at + 1, tag) for at, tag in enumerate(tags))))
    raise ValueError(
        f"custom scalars '{title}': ['Multiline', tags] or ['Margin', [value, lower, upper]] is needed, not "
        f"{[kind, tags]!r}"
    )


# ---- Sounds and moving pictures ---------------------------------------------------------------------------


def sound(tag, samples, rate):
    """A WAV of one channel of 16 bits; `samples` are from -1 to 1."""
    data = (samples.clip(-1, 1) * 32767).round().astype("<i2").tobytes()
    head = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    chunks = b"fmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    wav = b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks
    seconds = _varint(1 << 3 | 5) + struct.pack("<f", rate)
    audio = seconds + _integer(2, 1) + _integer(3, len(samples)) + _block(4, wav) + _block(5, "audio/wav")
    return _block(1, tag) + _block(6, audio)


def _chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _packed(picture):
    """Rows of a PNG, none of them filtered."""
    height, width, channels = picture.shape
    rows = picture.reshape(height, width * channels)
    return zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))


def png(pictures, fps=None):
    """uint8 (frames, height, width, 1, 3 or 4) as PNG; several frames play at `fps`, without an end."""
    count, height, width, channels = pictures.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    made = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
    if count == 1:
        return b"\x89PNG\r\n\x1a\n" + made + _chunk(b"IDAT", _packed(pictures[0])) + _chunk(b"IEND", b"")
    made += _chunk(b"acTL", struct.pack(">II", count, 0))
    number = 0
    for at, picture in enumerate(pictures):
        delay = struct.pack(">HH", max(1, round(1000 / fps)), 1000)
        place = struct.pack(">IIIII", number, width, height, 0, 0)
        made += _chunk(b"fcTL", place + delay + b"\0\0")
        number += 1
        if at == 0:  # what a program shows that knows no moving pictures
            made += _chunk(b"IDAT", _packed(picture))
        else:
            made += _chunk(b"fdAT", struct.pack(">I", number) + _packed(picture))
            number += 1
    return b"\x89PNG\r\n\x1a\n" + made + _chunk(b"IEND", b"")


def video(tag, frames, fps):
    """Of uint8 (frames, height, width, channels): a moving PNG, which browsers play."""
    _, height, width, channels = frames.shape
    sizes = _integer(1, height) + _integer(2, width) + _integer(3, channels)
    return _block(1, tag) + _block(4, sizes + _block(4, png(frames, fps)))


def with_boxes(pixels, boxes, labels, scale):
    """uint8 (height, width, 3) of (height, width, channels): red lines around the boxes, labels within."""
    import numpy

    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise ImportError("add_image_with_boxes draws with Pillow: pip install pillow") from None
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).convert("RGB")
    draw = ImageDraw.Draw(picture)
    for (left, top, right, bottom), label in zip(boxes, labels, strict=True):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(corners, width=2, fill="red")
        if label:
            _, _, width, height = draw.textbbox((0, 0), label)
            draw.rectangle((left, bottom - height, left + width, bottom), fill="red")
            draw.text((left, bottom - height), label, fill="black")
    if scale != 1:
        picture = picture.resize([max(1, int(size * scale)) for size in picture.size])
    return numpy.asarray(picture)


# ---- Embeddings, which TensorBoard's projector reads from files -------------------------------------------


def tsv(rows):
    """Of rows of texts or numbers; a tab or a line's end within one would be another cell."""
    table = str.maketrans("\t\r\n", "   ")
    return "".join("\t".join(str(cell).translate(table) for cell in row) + "\n" for row in rows)


def quoted(text):
    """A string of a protocol buffer's text form."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
