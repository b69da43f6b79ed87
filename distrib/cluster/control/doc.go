// Package control is the control plane of a cluster: who takes part, who leads, where
// shards are, which checkpoint is the newest.
//
// etcd holds it. It is embedded in the node of rank 0, so that nothing has to be prepared;
// in the nodes of ranks 0 to 2, which go on when one of them is lost; or it runs already
// and is named by its URLs. Ranks 0 to 2 either know beforehand where each of them is, or it
// begins in rank 0 and spreads. Everything of a job is below /gomem/<job>/:
//
//	epoch              the number of the newest view
//	view/<epoch>       its nodes, written in one transaction with epoch
//	node/<id>          a node that is there: a key of its lease
//	server/<id>        a server in a node, where etcd spreads; it ends with the lease, too
//	lead/<role>/       who leads, and who would
//	barrier/<name>/    who has come
//	shard/<epoch>/     owners and replicas of ranges of hashes
//	id                 a random id of the job, which its checkpoints have
//	ckpt               the newest complete checkpoint, and who has made it in which epoch
//	stop               why all nodes are to end
//	doctor/            questions to nodes and their answers
//	kv/                what [Control.Put] puts
//
// Never what changes at every step: clocks travel with the data, between nodes. Three
// servers with disks do some five hundred writes a second.
//
// # Views
//
// Each node keeps a lease of five seconds and renews it twice a second. One node, by
// election, watches who is there and writes the next view: the first once enough nodes
// have come and, for a second, more; then at once when a node is gone, and a second after
// one has come. The transaction holds only while the writer leads and the view before is
// the one it has read, so two leaders write no two views of an epoch. A node keeps its id
// in all views that it is in; ids of nodes that are gone are free again.
//
// # Servers that come and go
//
// Where [Config.Spread] is three, a node of the view that is to have a server puts its key, makes
// itself a learner of etcd, starts, and is then given a vote: one node after the other, so that no
// node that does not come up costs a quorum. A member whose node has lost its lease is removed
// by the others, and the next node takes its place; with fewer than three nodes one of them has
// the only server, since of two none could be spared. Who leaves gives etcd's lead and its vote
// away first. All clients follow the keys to where the servers are.
//
// # Fencing
//
// A node counts its own lease from when it sent the request that renewed it, so it
// gives up before the others may take its place: its contexts end, [Control.Views] delivers
// a view that it is not in, and is closed. A node that is cut off cannot find a quorum and
// so not renew its lease, whatever it hears of its neighbours: a minority comes to rest
// within the lease, before the majority goes on.
//
// A checkpoint is made the latest only by a node of the newest view, which asks in a transaction
// whether it is one ([Control.Saved]), and only as long as its lease lasts from then on: who was
// stopped for longer than that and wakes has been replaced, and asks again before it writes.
//
// An etcd that the job does not bring may be away for a while, and come back with the leases that
// it had. So there a node counts itself out only after its lease's time once more ([Config.Grace]),
// or when it hears that it is. It cannot do harm for so long: it writes no checkpoint and leads in
// nothing, and those who go on without it, if it alone is cut off, have left its epoch, so that it
// makes no step with them.
//
// Only durations are compared, each by one machine's monotonic clock: etcd counts a
// lease's five seconds, the node counts its own. What time of day it is on which machine
// plays no part in any of this. Doctor reports differences because logs are hard to read
// with them, and because certificates have dates.
//
// # What it does not do
//
// It moves no data and reads no model. It neither restarts nor launches nodes: the site's
// scheduler does. When the one server of a job is gone for longer than a lease, or most of three
// at once, all nodes come to rest; that is the price of the set-up that needs no preparation.
package control
