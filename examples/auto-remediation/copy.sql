INSERT INTO lake.media.playback_copy BY NAME SELECT * FROM ${capture.change_table}
