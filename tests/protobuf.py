"""The wire format, for scripts that make profiles."""


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def chunk(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data
