# What each device computes and sends over time: one row per device, device 0 on top; of two results,
# those that were predicted above those that were measured.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
set xrange [from:until] noextend
set yrange [n_rows:0] noextend
set xlabel sprintf('time (%s)', time_unit) offset 0, 0.3 textcolor rgb text_colour
set ylabel 'device' textcolor rgb text_colour
set ytics scale 0 ()
do for [i = 0:n_devices - 1:tick_step] {
    do for [panel = 0:n_panels - 1] {
        row = n_panels == 1 ? i : panel * (n_devices + 1) + 1 + i
        set ytics add (device_name(first_device + i) row + (lane_top + lane_bottom) / 2)
    }
}

plot folder.'/rows.dat' using (from):($1):(from):(until):($1 + lane_top):($1 + lane_bottom) \
         with boxxyerror lc rgb idle_colour, \
     folder.'/narrow.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable, \
     folder.'/wide.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable \
         lw 0.5 fs solid 1 border lc rgb 'white', \
     folder.'/labels.dat' using 1:2:3:4 with labels center font font(label_size) \
         textcolor rgb variable
unset multiplot
set output
