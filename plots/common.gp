# Terminal, fonts and defaults of all plots. Sizes and positions are in points from the upper left
# corner; they come from parameters.gp, which is read before.

set encoding utf8
set decimalsign '.'
font(size) = sprintf('sans-serif,%g', size)
device_name(i) = strlen(device_names) > 0 ? word(device_names, i + 1) : sprintf('%d', i)

# Cairo's terminals count fonts at 96 dpi.
if (format eq 'svg') {
    set terminal svg size sheet_width, sheet_height font font(font_size) \
        background 'white' noenhanced
}
if (format eq 'png') {
    set terminal pngcairo size sheet_width, sheet_height font font(font_size) fontscale 0.75 \
        noenhanced
}
if (format eq 'pdf') {
    set terminal pdfcairo size sheet_width / 72.0, sheet_height / 72.0 font font(font_size) \
        fontscale 0.75 linewidth 1 noenhanced
}
set output output

across(x) = 1.0 * x / sheet_width
down(y) = 1.0 - 1.0 * y / sheet_height

text_colour = 0x202020
line_colour = 0x808080
grid_colour = 0xD0D0D0

set border 1 lc rgb line_colour lw 1
set tics nomirror out scale 0.5 textcolor rgb text_colour
set xtics nomirror
set ytics nomirror
set format x '%.6g'
set format y '%.6g'
unset key
set style fill solid 1 noborder
set multiplot
