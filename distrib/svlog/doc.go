// Package svlog keeps a log of the updates that a replica has folded in, from which the replica
// is made again as it was at any clock: Orpheus' incremental checkpoint of sufficient vectors
// (Xie et al., SoCC 2018, 3.3).
//
// The paper's identity, W_T = W_0 + the sum of all updates up to T, holds of a rule that adds and
// of nothing else: not with momentum or weight decay, not once replicas are averaged; and a log
// of updates outgrows its matrix, J x K, after JK/(B(J+K)) clocks of batches of B. So a log here
// is of what was done to a replica, in the order in which it was done: updates in the form in
// which they were folded in, and bases, which are all values and what the rule keeps beside them.
// [History.Restore] takes a base and does all of it again through the same rule. The same
// additions in the same order have the same bits, so nothing is approximate: momentum, decay and
// moments come of the rule, and what an average has made of a replica is a base. That is why
// records carry no scale: whatever scales, a rule does, or a base has the outcome.
//
// # Off the compute path
//
// A [Log] is a [distrib.Journal]. The engine tells it of an update under its lock, in the order of
// folding in, and the log notes no more than where the update is. An update never changes: it
// belongs to the synchronizer from when it is pushed, and what is received shares no memory with
// a message. So nothing is copied and nobody waits; the log's one goroutine encodes it later, and
// then lets go of it. The paper has its thread read vectors only and not the matrix, and so has
// this one. Only a base is copied under the lock, a pass over memory: at the beginning, where a
// barrier's work has just gone over all of it, and where the log has grown as long as its base.
//
// What is told is written when a clock has ended, or at 64 MiB, and made durable by one fsync: a
// group. Clocks that end while a disk is at work are its next group. When more waits than a group
// and a base, a worker waits at its tick, where nobody's lock is held, so memory is bounded.
//
// # Segments
//
// A log is files, 00000001.svlog and so on. Each begins with a description, which is JSON, and a
// base, and has all that followed up to the next base, which begins another: so each is
// restored on its own. The older ones are removed when the newest has a clock on the disk, all but
// Options.Keep-1 of them. A base comes at the first clock at which what followed the one before
// would otherwise be more than that is, so a segment is never more than two bases long, if an
// update is less than one.
//
// A record is a head of 36 bytes, little endian, and a body:
//
//	 0  magic 0x6c767367    4  kind, three zeros    8  origin    12  bytes of body
//	16  clock    24  bytes of this file that were durable when this was written
//	32  CRC-32C of the head up to here and the body
//
// and by kind:
//
//	1 head    JSON: version, parameters, names of states, and what the log's owner says
//	2 base    bytes of what a rule keeps of the rows: a count and numbers for each row; a
//	          frame of package distrib with the rows as dense numbers
//	3 update  a frame: dense, sparse or factors, in 32 or 16 bits, of some rows; origin is the
//	          node that it came from, clock the one that it was made in
//	4 read    param, row, n: the worker takes these rows, as they are now, to compute with
//	5 state   which, from what byte on, and bytes that are kept beside the replica
//	6 mark    a clock has been reached, and what the log's owner says of it
//	7 end     the log was closed in order
//
// # What a clock is
//
// Updates of other nodes come whenever they come, also between the reads of two parameters. What
// a worker computes with is what it has read, so that is what is restored: each row as it was
// when it was last read before the mark, or as the segment's base has it, if it was not read
// since. Who marks a clock again, having gone back, is restored to the later one.
//
// # What can go wrong
//
// A process that is killed loses what it had not yet had made durable. What it was writing is the
// tail of the last file: records that are not whole, after which nothing says that they had been
// durable. It is left out by whoever reads, and cut off when the log is gone on with. Every record
// says how much of its file was durable before it, and a segment is durable before the next is
// begun; so of what is not whole and had been durable something behind it says so, and that is
// never left out: it is a *[DamageError] with file, offset and clock. Clocks before the damage, and
// those of other segments, can still be restored. Of the last group alone nothing tells a tail
// from damage, unless the log was closed in order.
//
// When nothing can be written, a disk being full, the owner is told once, and training goes on.
// What is durable of the segment stays, nothing more is written to it, and when the next base is
// due a new one is tried.
package svlog
