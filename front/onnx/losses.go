package onnx

// losses are operators of losses.
var losses = each(map[string]func(n *node){})
