package onnx

// norms are operators of norms.
var norms = each(map[string]func(n *node){})
