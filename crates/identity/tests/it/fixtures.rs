//! Keys and a token that another implementation made (Node's `crypto`): RSA keys cannot be made here, and what signed
//! the token is not kept.

/// An RSA key of 2,048 bits.
pub(crate) const RSA_PEM: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArrxSNuBSGlJIZdBvD8g1
aYd7mKLrPxe/vjHFU5hhff7wHkNaBlGNLahHnNTBPp6nFLA2BFZFf/G0/Q4OzJ4+
bee1TVokb/10La47P11iG7H/NcFVMyV/nAAgHkrwGLabdCU4ir2TxGnPf1NGNNmt
hIeV5pKTd+pqdjUl1wF8TU1WjArzlwxkSVoSR5prq4l3P9bhnC+O5FuD4KPmi3xB
5VxX20BD+BoRWdoFq67tyt6yA/7WQQSNL67Eh5P+bCGZSTdniG1LcBYPJob9uQq0
eiKcnQk3CJskTfBlzz+zlUZy7XRR9y9jALuZhlYQEg0S1TMDZOzfskDljx8S9biE
YQIDAQAB
-----END PUBLIC KEY-----";

/// Its modulus, as a JSON Web Key has it; the exponent is `AQAB`.
pub(crate) const RSA_MODULUS: &str = concat!(
    "rrxSNuBSGlJIZdBvD8g1aYd7mKLrPxe_vjHFU5hhff7wHkNaBlGNLahHnNTBPp6nFLA2BFZFf_G0_Q4OzJ4-bee1TVokb_10",
    "La47P11iG7H_NcFVMyV_nAAgHkrwGLabdCU4ir2TxGnPf1NGNNmthIeV5pKTd-pqdjUl1wF8TU1WjArzlwxkSVoSR5prq4l3",
    "P9bhnC-O5FuD4KPmi3xB5VxX20BD-BoRWdoFq67tyt6yA_7WQQSNL67Eh5P-bCGZSTdniG1LcBYPJob9uQq0eiKcnQk3CJsk",
    "TfBlzz-zlUZy7XRR9y9jALuZhlYQEg0S1TMDZOzfskDljx8S9biEYQ",
);

/// Signed by that key: `{"alg":"RS256","kid":"r1"}`,
/// `{"iss":"https://id.example","aud":"nylorun","sub":"ann","exp":2000}`.
pub(crate) const RSA_TOKEN: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJueWxvcnVuIiwi",
    "c3ViIjoiYW5uIiwiZXhwIjoyMDAwfQ.IqtLZDPi7rICN6VSot3IyfhCA-hkCZqDJrfc7sim8MszttWhnZvnGC2P1JEaeuT7K",
    "3sdQ9OOk8x9C5_CnsZ_qatBKYzuQI90zrNSgCYLgn-EMkCG4nFfcsZJt4WOq5o_rZUEkU5QXVT6M8tUXgE-4Ck1xEjrRy3ax",
    "LKPEkgyVL9VXrYPfAFwRGk6MaVAXbz7Xwy3VSVTTCQYUfsYYWFFisxGQi656HcO_8pP1g12Bk_aaa0qo_wzI4b4Ffh4d6ozK",
    "B0xzdprEbWYP0YWceOJhihewOGHkSbDD1aLPxEB2PoDmKD5_gH6jTPiIWMWGJCUYx6aRa3EytmgrkCDbPiqZw",
);

/// The same key in the older form, which is not taken.
pub(crate) const RSA_PKCS1_PEM: &str = "-----BEGIN RSA PUBLIC KEY-----
MIIBCgKCAQEArrxSNuBSGlJIZdBvD8g1aYd7mKLrPxe/vjHFU5hhff7wHkNaBlGN
LahHnNTBPp6nFLA2BFZFf/G0/Q4OzJ4+bee1TVokb/10La47P11iG7H/NcFVMyV/
nAAgHkrwGLabdCU4ir2TxGnPf1NGNNmthIeV5pKTd+pqdjUl1wF8TU1WjArzlwxk
SVoSR5prq4l3P9bhnC+O5FuD4KPmi3xB5VxX20BD+BoRWdoFq67tyt6yA/7WQQSN
L67Eh5P+bCGZSTdniG1LcBYPJob9uQq0eiKcnQk3CJskTfBlzz+zlUZy7XRR9y9j
ALuZhlYQEg0S1TMDZOzfskDljx8S9biEYQIDAQAB
-----END RSA PUBLIC KEY-----";

/// An RSA key of 1,024 bits, which is too short.
pub(crate) const SHORT_RSA_PEM: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC8kYtj+iAWcMmQXKhby53XsYX3
rdGFS4XPrptyEnIeoI//aVlyXkXrDR5oHonIyNraPDlqIKbwLt2Yji4CVWlMwvPO
MDuBjUnJy+NuOkE97cgOXpk6UNaBcjpGZ2/YadJ+OR6MFJ7CaL1StMn9OpkXYmxH
WtxmtUmNgcJOuvhRYQIDAQAB
-----END PUBLIC KEY-----";

/// A key on a curve that is not taken.
pub(crate) const P384_PEM: &str = "-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE1kM4Rq22+2Ra18M9zzkAuAAqbYftW2Nl
ipZDT6C0aFFeIDTjoiNP+fcmgAo/rqqatNu7E+xbw0pHlT4VF7xRgJfqPWF3q5Kx
jsmd3ZbXzD51KXL/FuTN8mV8YL3hd15L
-----END PUBLIC KEY-----";

/// A P-256 key.
pub(crate) const P256_PEM: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMjvnd8W91iXB1klYYSxQaQ5k+QvK
wBXUsAJYWKM3f8WBY+4ABiIQ6XvJgOFwoIxvnKu1qos5t372GFCjgH4BUg==
-----END PUBLIC KEY-----";

/// An Ed25519 key.
pub(crate) const ED25519_PEM: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA0Z9btnDidmUvAmnONz/BLb7FzDk+F0Rt55kf1ZpzTII=
-----END PUBLIC KEY-----";
