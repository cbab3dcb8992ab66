"""The only conversion factors of the package. Decimal prefixes throughout: tera is 10**12, a GB is 10**9 bytes."""

SECONDS_PER_HOUR = 3600.0
TOKENS_PER_MTOK = 1e6
BYTES_PER_ELEMENT = {"bf16": 2.0, "fp8": 1.0}
