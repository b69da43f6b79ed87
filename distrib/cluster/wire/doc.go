// Package wire carries messages between the nodes of a cluster: a [distrib.Transport] over
// gRPC, and beside it over plain connections for what is most of the bytes.
//
// Of gRPC it takes what is hard to write again: HTTP/2's streams and flow control, TLS,
// keep-alive, cancellation. It does not take protobuf, which would copy what it carries
// twice and costs more than HTTP/2: a codec of its own hands out frames of at most 1 MiB
// that refer to the sender's bytes, and copies what comes in, once, to where the message
// is put together. Small pieces are copied into a frame's header rather than referred to.
// A sum (crc32c) guards each frame.
//
// From each node to each other there is one connection of gRPC's, with one stream a class.
// Order is a stream's, so one per class is what keeps it; gRPC takes turns between streams, so
// control messages do not wait for a model's weights. A stream's window is what may be
// under way and wait at the receiver: a handler that blocks fills it, and then the
// sender's frames are not written, and Done does not come.
//
// Messages of class [distrib.Collective] have a connection of their own, with the same frames
// and without gRPC: an all-reduce of gradients is limited by how often its bytes are copied,
// and HTTP/2 in frames of 16 KiB copies them twice more on each side. It comes to the same
// port, through the same gate, with the same certificates, and only once a stream of gRPC's was
// let in, which settles epochs and views. What it writes comes from the sender's memory, and
// is read to where its message is put together; that memory is used again when the receiver
// lets go of the message, by its Done. With TLS its frames have no sums, since TLS has, nor within
// a machine, where nothing changes them on the way. Its window is the kernel's.
//
// Done: gRPC's SendMsg returns long before the bytes have left, so they may not be used
// again then. But it releases the buffers that it is given, each to its pool, and frames
// are pools: when the last of a message's frames was written, Done is called. A message's
// sender learns that its bytes are its own again, not that they have arrived.
//
// How fast a way is, which filters ask for, the kernel says on Linux: how many bytes were
// acknowledged, and for how long there were any that were not. Who reads acknowledges at
// once, so that nothing is in it but the way. Elsewhere it is how fast bytes leave, which for
// messages that fit into a socket's buffers says nothing of the network.
//
// A connection that breaks is not made again. What was under way may have arrived or not,
// and whoever sent it twice would count an update twice; so the other node is down, in this
// epoch, on both sides, and the handler is told. A new epoch ([Port.Open]) begins anew.
// Streams say which epoch and which view they are of when they open: a node in another one
// refuses them, and both say so ([EpochError], [ViewError]). A node that is behind is
// asked again.
//
// Silence is broken every second; who does not answer in 3.75 more is down. A process that is
// stopped for three seconds is not. Who knows by other ways that a node is gone says so
// ([distrib.Dropper]), and need not wait for that.
//
// Strangers: without a certificate there is the handshake's error and nothing else; a
// [trust.Gate] bounds how many may try. Frames, heads and messages have bounds that are
// checked before memory is asked for.
//
// Frames, greetings and connections are of a version, and nodes of two refuse each other.
//
// What it does not do: several connections to a node, for networks that are faster than
// one core can encrypt; compression, which filters do better; sending again.
package wire
