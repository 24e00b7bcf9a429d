SELECT assert_true(max_by(summary, committed_at)['changed-partition-count'] = 6, 'not six days were written')
FROM lake.media.weekly_members.snapshots
