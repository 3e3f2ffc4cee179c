"""Ways of placing an embedding's people in a plane, a file each."""
