"""Long trials of what must hold whatever happens: kills, damage, full disks, hostile files, attacks on what is told."""
