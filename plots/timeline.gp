# What each device computes and sends over time: one row per device, device 0 on top; of several runs
# one above the other.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
set xrange [from:until] noextend
set yrange [n_rows:0] noextend
set xlabel x_title offset 0, 0.3 textcolor rgb text_colour
unset ytics
set label 2 y_title at screen across(16), 0.5 * (down(area_top) + down(area_bottom)) \
    center rotate by 90 textcolor rgb text_colour
middle(y) = y + (lane_top + lane_bottom) / 2

# waiting with a pattern is first a plain box, then the pattern
plot folder.'/rows.dat' using (from):($1):(from):(until):($1 + lane_top):($1 + lane_bottom) \
         with boxxyerror lc rgb idle_colour, \
     folder.'/waits.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable, \
     folder.'/waits.dat' using 1:($6 == 4 ? $3 : NaN):1:2:3:4 \
         with boxxyerror fs transparent pattern 4 noborder lc rgb 0x404040 lw 0.4, \
     folder.'/waits.dat' using 1:($6 == 2 ? $3 : NaN):1:2:3:4 \
         with boxxyerror fs transparent pattern 2 noborder lc rgb 0x404040 lw 0.4, \
     folder.'/narrow.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable, \
     folder.'/wide.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable \
         lw 0.5 fs solid 1 border lc rgb 'white', \
     folder.'/rows.dat' using (from):(middle($1)):2 with labels right offset -0.8, 0 \
         textcolor rgb text_colour, \
     (has_path ? folder.'/path.dat' : '/dev/null') using 1:2 with lines lw 3 lc rgb 'white', \
     (has_path ? folder.'/path.dat' : '/dev/null') using 1:2 with lines lw 1.4 lc rgb 0, \
     folder.'/labels.dat' using 1:2:3:4 with labels center font font(label_size) \
         textcolor rgb variable
unset multiplot
set output
