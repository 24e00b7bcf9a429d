SELECT explode(sequence(event_day, date_add(event_day, 6))) AS last_day, event_day, member
FROM lake.media.playback
