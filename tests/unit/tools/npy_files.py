"""The .npy files of tests: written and read without NumPy."""
import ast
import pathlib
import struct


def write_npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    return path


def read_npy(path):
    """The header as a dictionary, and the bytes of the elements."""
    data = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<H", data[8:10])
    return ast.literal_eval(data[10:10 + size].decode()), data[10 + size:]
