package onnx

// images are operators of images.
var images = each(map[string]func(n *node){})
