package models

import "github.com/gomem/gomem/graph"

// Decoder continues texts, some tokens at a time. What it has computed of the
// tokens before stays in state variables of its graph, the caches, so that a
// token costs one token's work however long the text is. The updates of a step
// write the caches and nothing else.
type Decoder struct {
	Graph  *graph.Graph
	Batch  int          // texts at once, the beams of each counted
	Length int          // tokens of a text at most
	Vocab  int          // ids are below it
	Encode *Encoding    // of the texts to translate; nil for decoder-only models
	Steps  []DecodeStep // by falling number of tokens; the last takes one
}

// Encoding is the execution that reads source texts and keeps what decoding
// attends to.
type Encoding struct {
	Source  graph.Value   // an input i32[batch length], 0 behind a text's end
	Updates []*graph.Node // of the caches of keys and values
}

// DecodeStep is an execution that takes the same number of tokens of every text.
// Steps of several sizes write the same caches, so that a prompt can be taken in
// large steps and a rest of it in small ones.
type DecodeStep struct {
	Tokens   graph.Value   // an input i32[batch n]: the next n ids of every text
	Position graph.Value   // an input i32[]: of the first of them in its text, from 0
	Parent   graph.Value   // an input i32[batch]: the row whose past each row continues
	Logits   graph.Value   // f32[batch vocab], of the token after the last of them
	Updates  []*graph.Node // of the caches
}

// Size is the number of tokens that a step takes of every text.
func (s DecodeStep) Size() int { return s.Tokens.Type().Size(1) }
