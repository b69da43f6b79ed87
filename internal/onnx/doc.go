// Package onnx reads and writes files of ONNX, the format in which networks are exchanged: nodes
// of named operators, weights, and subgraphs, in messages of protobuf. What operators compute is
// package front/onnx's.
//
// # Why not generated code
//
// The schema (onnx.proto, IR version 13) is protobuf's, and code for it can be generated. That
// code copies every tensor out of the file, so that a network of 10 GiB needs 20 to be opened, and
// brings reflection into a program that has no other use for it. Here a message is decoded by a
// function that names its fields (protowire reads them), and a tensor's bytes are a part of the
// file's. So nothing is allocated that is larger than what the file has, whatever it claims.
//
// A file is written again by copying its fields, those that nobody here knows too, and replacing
// the bytes of tensors: what was decoded could only be encoded with losses.
//
// # What is accepted
//
// A file is untrusted. Unknown fields are passed over, as protobuf has it; fields that are known
// and that nobody here honours (training information, sparse tensors, quantisation annotations)
// are errors. Graphs within graphs go as deep as [MaxDepth]. A tensor has as many bytes as its type
// and sizes say, or is an error when it is asked for, and external data are within the directory of
// the file.
package onnx
