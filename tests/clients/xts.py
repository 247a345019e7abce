# SPDX-License-Identifier: BSD-2-Clause
"""AES-XTS and AES key wrap by OpenSSL's library, and vectors as dpdk-test-crypto-perf reads them."""
import ctypes
import ctypes.util
import hashlib

CRYPTO_LIBRARY = ctypes.util.find_library('crypto') or 'libcrypto.so.3'
# EVP_CIPHER_CTX_set_flags(3).
FLAG_WRAP_ALLOW = 1


def encrypted(cipher, key, iv, data):
    """Returns @data encrypted by the cipher with the name of EVP_get_cipherbyname(3)."""
    library = ctypes.CDLL(CRYPTO_LIBRARY)
    for name in ('EVP_CIPHER_CTX_new', 'EVP_get_cipherbyname'):
        getattr(library, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.EVP_CIPHER_CTX_new())
    library.EVP_CIPHER_CTX_set_flags(context, FLAG_WRAP_ALLOW)
    out, written = ctypes.create_string_buffer(len(data) + 16), ctypes.c_int()
    chosen = ctypes.c_void_p(library.EVP_get_cipherbyname(cipher.encode()))
    good = (library.EVP_CipherInit_ex(context, chosen, None, key, iv, 1) == 1 and
            library.EVP_CipherUpdate(context, out, ctypes.byref(written), data, len(data)) == 1)
    library.EVP_CIPHER_CTX_free(context)
    if not good:
        raise RuntimeError(f'OpenSSL does not encrypt by {cipher}')
    return out.raw[:written.value]


def xts(key, tweak, data):
    """Encrypts one data unit; @tweak is little-endian, as in IEEE 1619."""
    return encrypted(f'aes-{len(key) * 4}-xts', key, tweak, data)


def wrap(kek, data):
    """RFC 3394."""
    return encrypted(f'id-aes{len(kek) * 8}-wrap', kek, None, data)


def some_bytes(seed, count):
    return hashlib.shake_256(seed.encode()).digest(count)


def vector(key_bytes, length):
    """Returns one data unit of @length bytes: its lines plaintext, cipher_key, cipher_iv, ciphertext."""
    values = {'plaintext': some_bytes(f'plaintext {length}', length), 'cipher_key': some_bytes('key', key_bytes),
              'cipher_iv': some_bytes('tweak', 16)}
    values['ciphertext'] = xts(values['cipher_key'], values['cipher_iv'], values['plaintext'])
    return ''.join(f'{name} = {", ".join(f"0x{byte:02x}" for byte in value)}\n' for name, value in values.items())
