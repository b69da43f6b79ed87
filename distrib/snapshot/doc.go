// Package snapshot keeps checkpoints of tables in a directory: what all rows were at a clock, to
// the update, though nobody waits while they are saved (Bösen, Wei et al., SoCC 2015; Parameter
// Flow).
//
// Each owner of rows saves its own at the same clock, when it has all updates of the clocks before
// and none of later ones, see [distrib.Config.Saves]. So a snapshot is several files, which appear
// one after the other, and it is whole once they have all rows of the run's tables. A directory of
// snapshots belongs to one run, whose processes all see it:
//
//	run.json                         what the run is, in its own words
//	40.2/0.mlr-w.3-of-48.shard       of epoch 40, in view 2: 3 rows of 48, which node 0 has
//	40.2/0.mlr-loss.14-of-48.shard   tables that are kept in step otherwise are apart
//	40.2/1.mlr-w.4-of-48.shard
//
// A view is in the name since workers may have gone while an epoch was saved: who goes on has
// other rows, and makes the epoch again. Files of different views are never put together.
//
// Each file is written beside its name, synced and renamed, and has a checksum, so a crash at any
// time leaves the snapshots that were whole. Those that are older than the last [Kept] whole ones
// are removed.
package snapshot
