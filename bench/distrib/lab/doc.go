// Package lab is a network of real sockets and real packets on one machine, for measurements and
// for harm: network namespaces, one a node, whose links can be slow, lose packets, and be cut one
// way or both. There is no latency but the rates'. It needs Linux and root.
package lab
