// Nothing: this library exists for its precompiled headers.
